// Keys that need work, done one at a time; what fails is tried again later, and what changes meanwhile is done again.
import { setTimeout as sleep } from 'node:timers/promises'

export interface PendingWork {
  add(key: string): void
  /** Works until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

export function pendingWork(
  work: (key: string) => Promise<void>,
  failed: (key: string, error: unknown, attempt: number) => void,
  retryMs = 1_000,
): PendingWork {
  const keys = new Set<string>()
  const attempts = new Map<string, number>()
  let wake = (): void => {}

  function add(key: string): void {
    keys.add(key)
    wake()
  }

  async function doOne(key: string, signal: AbortSignal): Promise<void> {
    keys.delete(key)
    try {
      await work(key)
      attempts.delete(key)
    } catch (error) {
      if (signal.aborted) return
      const attempt = (attempts.get(key) ?? 0) + 1
      attempts.set(key, attempt)
      failed(key, error, attempt)
      void later(key, Math.min(retryMs * attempt, 30_000), signal)
    }
  }

  async function later(key: string, ms: number, signal: AbortSignal): Promise<void> {
    try {
      await sleep(ms, undefined, { signal, ref: false })
      add(key)
    } catch {
      // The work has ended.
    }
  }

  return {
    add,
    async run(signal) {
      const stop = (): void => wake()
      signal.addEventListener('abort', stop, { once: true })
      while (!signal.aborted) {
        const [key] = keys
        if (key !== undefined) await doOne(key, signal)
        else await new Promise<void>((resolve) => (wake = resolve))
      }
      signal.removeEventListener('abort', stop)
    },
  }
}
