// Work that goes on beside the rest, and ends with the process.
import type { Scope } from '../observability/index.ts'

/** Starts work; the returned function ends it and waits for it. */
export function running(
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
  log: Scope,
): () => Promise<void> {
  const stop = new AbortController()
  const done = work(AbortSignal.any([signal, stop.signal])).catch((error: unknown) => {
    if (!stop.signal.aborted && !signal.aborted) log.error('background work ended', { reason: String(error) })
  })
  return async () => {
    stop.abort()
    await done
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
