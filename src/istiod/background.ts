// Work that goes on beside the rest, and ends with the process.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Scope } from '../observability/index.ts'

/**
 * Starts work; the returned function ends it and waits for it. Work that fails is told of and started again after `pauseMs`; what is left of
 * the former attempt is ended by its signal.
 */
export function running(
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
  log: Scope,
  pauseMs = 2_000,
): () => Promise<void> {
  const stop = new AbortController()
  const ending = AbortSignal.any([signal, stop.signal])
  const done = keepAtIt(work, ending, log, pauseMs)
  return async () => {
    stop.abort()
    await done
  }
}

async function keepAtIt(
  work: (signal: AbortSignal) => Promise<void>,
  ending: AbortSignal,
  log: Scope,
  pauseMs: number,
): Promise<void> {
  while (!ending.aborted) {
    const failed = new AbortController()
    try {
      return await work(AbortSignal.any([ending, failed.signal]))
    } catch (error) {
      if (ending.aborted) return
      log.error('background work failed', { reason: String(error) })
      failed.abort()
    }
    // Aborted: the loop ends.
    await sleep(pauseMs, undefined, { signal: ending }).catch(() => {})
  }
}

/** Rejects with the reason of the signal if that comes first. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
