// Keys that need work, each done by one worker at a time; what fails is tried again later, and what changes meanwhile is done again.
import { setTimeout as sleep } from 'node:timers/promises'
import { isKubeError } from '../kube/index.ts'

export interface PendingWork {
  add(key: string): void
  /** Works until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

/** From this attempt on, what fails is to be told of, and what is refused is taken to be refused for good. */
export const tellingAttempt = 5
const refusedRetryMs = 600_000
const mostRetryMs = 30_000

/** An API server that has only just started refuses what it does not know rights for yet: that passes within seconds. */
function retryDelayMs(error: unknown, attempt: number, retryMs: number): number {
  return isKubeError(error, 403) && attempt >= tellingAttempt
    ? refusedRetryMs
    : Math.min(retryMs * attempt, mostRetryMs)
}

export function pendingWork(
  work: (key: string) => Promise<void>,
  failed: (key: string, error: unknown, attempt: number) => void,
  { retryMs = 1_000, mostAtOnce = 1 }: { readonly retryMs?: number; readonly mostAtOnce?: number } = {},
): PendingWork {
  const keys = new Set<string>()
  const underWay = new Map<string, Promise<void>>()
  const attempts = new Map<string, number>()
  let wake = (): void => {}

  function add(key: string): void {
    keys.add(key)
    wake()
  }

  /** What changes while it is done waits until it is done, and is then done again. */
  function next(): string | undefined {
    return underWay.size < mostAtOnce ? keys.values().find((key) => !underWay.has(key)) : undefined
  }

  function begin(key: string, signal: AbortSignal): void {
    keys.delete(key)
    const done = doOne(key, signal).finally(() => {
      underWay.delete(key)
      wake()
    })
    underWay.set(key, done)
  }

  async function doOne(key: string, signal: AbortSignal): Promise<void> {
    try {
      await work(key)
      attempts.delete(key)
    } catch (error) {
      if (signal.aborted) return
      const attempt = (attempts.get(key) ?? 0) + 1
      attempts.set(key, attempt)
      failed(key, error, attempt)
      void later(key, retryDelayMs(error, attempt, retryMs), signal)
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
        const key = next()
        if (key !== undefined) begin(key, signal)
        else await new Promise<void>((resolve) => (wake = resolve))
      }
      await Promise.all(underWay.values())
      signal.removeEventListener('abort', stop)
    },
  }
}
