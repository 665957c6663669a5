// How long a certificate may live.
import { SigningError } from './errors.ts'
import { formatGoDuration } from './go-duration.ts'

export interface Lifetimes {
  /** Seconds a certificate lives when the request names no lifetime. */
  readonly defaultTtlSeconds: number
  /** Longer requests are refused. */
  readonly maxTtlSeconds: number
}

/** Seconds: the default for a request of nothing or less. Throws a SigningError (TTL_ERROR) for more than is allowed. */
export function grantedTtl(requestedSeconds: number, { defaultTtlSeconds, maxTtlSeconds }: Lifetimes): number {
  if (!(requestedSeconds > 0)) return defaultTtlSeconds
  if (requestedSeconds <= maxTtlSeconds) return requestedSeconds
  const [asked, allowed] = [requestedSeconds, maxTtlSeconds].map(formatGoDuration)
  throw new SigningError('TTL_ERROR', `requested TTL ${asked} is greater than the max allowed TTL ${allowed}`)
}
