// Waiting times between attempts: doubling with jitter, reset by success.
import { setTimeout as sleep } from 'node:timers/promises'

export interface Backoff {
  /** Waits the next time; rejects when the signal aborts. */
  wait(signal?: AbortSignal): Promise<void>
  reset(): void
}

export function createBackoff(firstMs: number, mostMs: number): Backoff {
  let next = firstMs
  return {
    async wait(signal) {
      const delay = next * (0.75 + Math.random() / 2)
      next = Math.min(next * 2, mostMs)
      await sleep(delay, undefined, signal === undefined ? {} : { signal })
    },
    reset() {
      next = firstMs
    },
  }
}
