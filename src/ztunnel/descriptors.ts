// Tells when the process is about to run out of descriptors: the kernel then refuses connections, and nobody else says so.
import { readdir } from 'node:fs/promises'
import type { Scope } from '../observability/index.ts'

export interface DescriptorWatchOptions {
  /** How many descriptors the process may have. */
  readonly limit: number
  readonly log: Pick<Scope, 'warn' | 'info'>
  /** Between two looks; 5,000. */
  readonly intervalMs?: number
  /** How many there are. */
  readonly count?: () => Promise<number>
}

const warnedAt = 0.95
const calmBelow = 0.8

/** Warns once when descriptors run short, and again only after there were enough. */
export function watchDescriptors(options: DescriptorWatchOptions): Disposable {
  const { limit, log, intervalMs = 5_000, count = countOpen } = options
  let isShort = false
  let looking = false
  async function look(): Promise<void> {
    if (looking) return
    looking = true
    try {
      const open = await count()
      if (!isShort && open >= limit * warnedAt) {
        isShort = true
        log.warn('descriptors run short: new connections will be refused', { open: Math.min(open, limit), limit })
      } else if (isShort && open < limit * calmBelow) {
        isShort = false
        log.info('there are enough descriptors again', { open, limit })
      }
    } finally {
      looking = false
    }
  }
  const timer = setInterval(() => void look(), intervalMs)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

async function countOpen(): Promise<number> {
  if (process.platform !== 'linux') return 0
  try {
    return (await readdir('/proc/self/fd')).length
  } catch (error) {
    // To look takes a descriptor as well.
    if (error instanceof Error && 'code' in error && (error.code === 'EMFILE' || error.code === 'ENFILE')) {
      return Number.POSITIVE_INFINITY
    }
    throw error
  }
}
