// When a certificate is renewed, and how long to wait after a failure.
import { rotationDelayMs, type Validity } from '../../ca/client/index.ts'

/** Of the lifetime: renewals are spread over this much before the half life, so that certificates issued together are not renewed together. */
const spread = 0.05
const soonMs = 30_000
const shortestMs = 1_000
const firstRetryMs = 1_000
const longestRetryMs = 150_000

/** Milliseconds from now to the renewal; `random` in [0, 1). Certificates not yet valid or with impossible dates are renewed soon. */
export function renewalDelayMs(validity: Validity, nowMs: number, random: number): number {
  const [start, end] = [validity.notBefore.getTime(), validity.notAfter.getTime()]
  if (!(end > start) || start > nowMs) return soonMs
  const delay = rotationDelayMs(validity, nowMs, 0.5, spread, random)
  return delay >= shortestMs ? delay : Math.max(shortestMs, Math.min(soonMs, (end - nowMs) / 2))
}

/** Milliseconds to the retry after this many failures in a row (1 = the first): 1 s, doubling to 150 s, ± 20 %. */
export function retryDelayMs(failures: number, random: number): number {
  const delay = Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(failures - 1, 30))
  return delay * (0.8 + 0.4 * random)
}
