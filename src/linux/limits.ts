// The process's limit of open descriptors.
import { RLIMIT_NOFILE } from './constants.ts'
import { checked, libc } from './libc.ts'

/** Raises the soft limit of open descriptors to the hard limit. Returns the old and the new soft limit. */
export function raiseDescriptorLimit(): { readonly before: bigint; readonly after: bigint } {
  const limits = Buffer.alloc(16)
  checked('getrlimit', libc().getrlimit(RLIMIT_NOFILE, limits))
  const before = limits.readBigUInt64LE(0)
  const after = limits.readBigUInt64LE(8)
  if (before !== after) {
    limits.writeBigUInt64LE(after, 0)
    checked('setrlimit', libc().setrlimit(RLIMIT_NOFILE, limits))
  }
  return { before, after }
}
