// When to try again after a stream ended.
import { status } from '@grpc/grpc-js'

export type StreamEnd =
  | { readonly kind: 'closed' }
  | { readonly kind: 'not-connected'; readonly error: Error }
  | { readonly kind: 'status'; readonly code: number; readonly details: string }

export interface Retry {
  readonly delayMs: number
  /** The delay base for the next failure. */
  readonly nextBaseMs: number
  readonly level: 'debug' | 'warn'
}

const recycled = /transport is closing|received prior goaway|connection dropped|ECONNRESET|socket hang up/i

/**
 * A stream that had answered and was recycled (server restart, connection age) is reopened at once; everything else waits twice as long as the time before.
 */
export function retryAfter(
  end: StreamEnd,
  stream: { readonly answered: boolean; readonly baseMs: number },
  limits: { readonly leastRetryMs: number; readonly mostRetryMs: number },
): Retry {
  if (stream.answered && isRecycling(end)) {
    return { delayMs: limits.leastRetryMs, nextBaseMs: limits.leastRetryMs, level: 'debug' }
  }
  if (stream.answered && end.kind === 'closed') {
    return { delayMs: 0, nextBaseMs: limits.leastRetryMs, level: 'debug' }
  }
  const delayMs = Math.min(stream.baseMs * 2, limits.mostRetryMs)
  return { delayMs, nextBaseMs: delayMs, level: 'warn' }
}

function isRecycling(end: StreamEnd): boolean {
  if (end.kind !== 'status') return false
  switch (end.code) {
    case status.UNKNOWN:
    case status.CANCELLED:
    case status.DEADLINE_EXCEEDED:
      return true
    case status.UNAVAILABLE:
      return recycled.test(end.details)
    default:
      return false
  }
}
