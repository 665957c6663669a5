// Keys to look at, one at a time, each once however often it is added; failures are tried again with growing pauses.
export interface WorkQueue {
  add(key: string): void
  /** Waits for the work in hand; nothing further is begun. */
  close(): Promise<void>
}

const firstRetryMs = 20
const longestRetryMs = 10_000
/** Conflicts resolve themselves; what fails more often than this is worth a word. */
const quietRetries = 5

export function createWorkQueue(work: (key: string) => Promise<void>, onError: (error: unknown) => void): WorkQueue {
  const waiting = new Set<string>()
  const retries = new Map<string, number>()
  const timers = new Set<NodeJS.Timeout>()
  let running: Promise<void> | undefined
  let isClosed = false

  async function run(): Promise<void> {
    for (const key of waiting) {
      if (isClosed) return
      waiting.delete(key)
      try {
        await work(key)
        retries.delete(key)
      } catch (error) {
        retry(key, error)
      }
      // Requests come first.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  function retry(key: string, error: unknown): void {
    const count = (retries.get(key) ?? 0) + 1
    retries.set(key, count)
    if (count > quietRetries) onError(error)
    const timer = setTimeout(
      () => {
        timers.delete(timer)
        add(key)
      },
      Math.min(longestRetryMs, firstRetryMs * 2 ** count),
    )
    timers.add(timer)
  }

  function add(key: string): void {
    if (isClosed) return
    waiting.add(key)
    if (running !== undefined) return
    running = run().finally(() => {
      running = undefined
      const [next] = waiting
      if (next !== undefined) add(next)
    })
  }

  return {
    add,
    async close() {
      isClosed = true
      for (const timer of timers) clearTimeout(timer)
      await running
    },
  }
}
