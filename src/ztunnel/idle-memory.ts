// Gives back the memory that a load has left behind. The engine collects when it needs room for more, so that without new work what was
// needed at the peak stays resident for good.
import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { trimMemory } from '../linux/index.ts'

export interface IdleMemoryOptions {
  readonly checkMs?: number
  /** The share of its time that this thread was at work since the last call, 0 to 1. */
  readonly utilization?: () => number
  /** What the heap takes, in bytes. */
  readonly heapBytes?: () => number
  readonly release?: () => void
}

const defaultCheckMs = 10_000
const idleUtilization = 0.02
/** Less than this is not worth a pause. */
const leastBytes = 16 * 1024 * 1024

/**
 * Looks from time to time whether this thread (each has a heap of its own) had next to nothing to do, and then releases what its heap
 * has grown by since the last time. Each thread calls it once; the process must have been started with `--expose-gc`, else nothing happens.
 */
export function releaseIdleMemory(options: IdleMemoryOptions = {}): Disposable {
  const {
    checkMs = defaultCheckMs,
    utilization = utilizationSinceLast(),
    heapBytes = () => getHeapStatistics().total_heap_size,
    release = collector(),
  } = options
  let settledBytes = 0
  const check = (): void => {
    if (utilization() > idleUtilization || heapBytes() - settledBytes < leastBytes) return
    release?.()
    settledBytes = heapBytes()
  }
  const timer = release === undefined ? undefined : setInterval(check, checkMs).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

function utilizationSinceLast(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}

/** A pause of some tens of milliseconds: the thorough collection gives pages back, the ordinary one keeps them. */
function collector(): (() => void) | undefined {
  const { gc } = globalThis
  if (gc === undefined) return undefined
  return () => {
    void gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    trimMemory()
  }
}
