// A work queue of keys: each key is worked on once at a time, and again after a failure or when it was added meanwhile.
import type { Scope } from '../../observability/index.ts'

export interface WorkQueue extends AsyncDisposable {
  add(key: string): void
  /** Adds the key later; an earlier time already set for the key stays. */
  addAfter(key: string, delayMs: number): void
}

export interface WorkQueueOptions {
  readonly name: string
  readonly log: Scope
  readonly concurrency?: number
  /** Works on one key. The number it may resolve to is the time in milliseconds after which the key is due again. */
  readonly work: (key: string) => Promise<number | undefined>
}

const firstRetryMs = 50
const longestRetryMs = 30_000

export function createWorkQueue({ name, log, concurrency = 4, work }: WorkQueueOptions): WorkQueue {
  const due = new Set<string>()
  const running = new Set<string>()
  const failures = new Map<string, number>()
  const timers = new Map<string, { readonly at: number; readonly timer: NodeJS.Timeout }>()
  const idle: (() => void)[] = []
  let isClosed = false

  function start(): void {
    for (const key of due) {
      if (isClosed || running.size >= concurrency) return
      if (running.has(key)) continue
      due.delete(key)
      running.add(key)
      void run(key)
    }
  }

  async function run(key: string): Promise<void> {
    try {
      const again = await work(key)
      failures.delete(key)
      if (again !== undefined) queue.addAfter(key, again)
    } catch (error) {
      const count = (failures.get(key) ?? 0) + 1
      failures.set(key, count)
      // Someone else was faster, or the object is gone: the next look at it will tell.
      const { code } = error as { code?: unknown }
      if (code !== 409 && code !== 404 && !isClosed)
        log.warn('will try again', { controller: name, key, reason: String(error) })
      queue.addAfter(key, Math.min(firstRetryMs * 2 ** (count - 1), longestRetryMs))
    } finally {
      running.delete(key)
      if (running.size === 0) for (const done of idle.splice(0)) done()
      start()
    }
  }

  const queue: WorkQueue = {
    add(key) {
      if (isClosed) return
      due.add(key)
      start()
    },
    addAfter(key, delayMs) {
      if (isClosed) return
      const at = Date.now() + delayMs
      const existing = timers.get(key)
      if (existing !== undefined && existing.at <= at) return
      clearTimeout(existing?.timer)
      const timer = setTimeout(() => {
        timers.delete(key)
        queue.add(key)
      }, delayMs)
      timers.set(key, { at, timer })
    },
    async [Symbol.asyncDispose]() {
      isClosed = true
      due.clear()
      for (const { timer } of timers.values()) clearTimeout(timer)
      timers.clear()
      if (running.size > 0) await new Promise<void>((resolve) => idle.push(resolve))
    },
  }
  return queue
}
