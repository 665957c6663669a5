// Gives back the memory that a load has left behind. The engine collects, and the C library gives back, when they need room for more, so
// that without new work what was needed at the peak stays resident for good.
import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { trimMemory } from '../linux/index.ts'

const defaultCheckMs = 10_000
const megabyte = 1024 * 1024

export interface IdleWatch {
  readonly checkMs?: number
  /** The share of the time since the last call that was spent at work, 0 to 1. */
  utilization(): number
  /** What counts as next to nothing. */
  readonly idleBelow: number
  /** What is taken, in bytes. */
  bytes(): number
  /** Growth since the last release that is worth another one, in bytes. */
  readonly leastBytes: number
  /** Returns whether there may be more to release next time, without any growth. */
  release(): boolean
}

/** Looks from time to time whether there was next to nothing to do, and then releases what has been taken since the last time. */
export function releaseWhenIdle(watch: IdleWatch): Disposable {
  let settledBytes = 0
  const check = (): void => {
    if (watch.utilization() > watch.idleBelow || watch.bytes() - settledBytes < watch.leastBytes) return
    const isMoreLikely = watch.release()
    settledBytes = isMoreLikely ? 0 : watch.bytes()
  }
  const timer = setInterval(check, watch.checkMs ?? defaultCheckMs).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

/**
 * Collects the heap of the thread that calls it, a pause of some tens of milliseconds, when the thread is idle. Each thread calls it once;
 * the process must have been started with `--expose-gc`, else nothing happens.
 */
export function collectWhenIdle(): Disposable {
  const { gc } = globalThis
  if (gc === undefined) return { [Symbol.dispose]: () => undefined }
  return releaseWhenIdle({
    utilization: threadUtilization(),
    idleBelow: 0.02,
    bytes: () => getHeapStatistics().total_heap_size,
    leastBytes: 16 * megabyte,
    release() {
      // The thorough collection gives pages back, the ordinary one keeps them.
      void gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
      return false
    },
  })
}

/** Gives back what the C library keeps of memory that was freed, when no thread of the process has much to do. One thread calls it. */
export function trimWhenIdle(): Disposable {
  return releaseWhenIdle({
    utilization: processUtilization(),
    idleBelow: 0.05,
    bytes: () => process.memoryUsage.rss(),
    leastBytes: 8 * megabyte,
    release() {
      const before = process.memoryUsage.rss()
      trimMemory()
      // Threads that have not collected yet will free more.
      return before - process.memoryUsage.rss() > megabyte
    },
  })
}

function threadUtilization(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}

function processUtilization(): () => number {
  let last = { atMs: performance.now(), cpu: process.cpuUsage() }
  return () => {
    const now = { atMs: performance.now(), cpu: process.cpuUsage() }
    const usedMs = (now.cpu.user + now.cpu.system - last.cpu.user - last.cpu.system) / 1e3
    const passedMs = now.atMs - last.atMs
    last = now
    return passedMs > 0 ? usedMs / passedMs : 1
  }
}
