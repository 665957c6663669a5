// Memory that the C library keeps for later, given back to the system.
import { libc } from './libc.ts'

/** Where the C library has no call for it, and off Linux, nothing happens. */
export function trimMemory(): void {
  if (process.platform === 'linux') libc().mallocTrim?.(0)
}
