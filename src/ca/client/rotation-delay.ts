// When a certificate is due for renewal.

export interface Validity {
  readonly notBefore: Date
  readonly notAfter: Date
}

/**
 * Milliseconds from now until only `graceRatio` of the certificate's lifetime is left; 0 when that time has passed. `jitter` in
 * [-1, 1] moves the ratio by up to `jitterRatio`.
 */
export function rotationDelayMs(
  { notBefore, notAfter }: Validity,
  nowMs: number,
  graceRatio: number,
  jitterRatio = 0,
  jitter = 0,
): number {
  const [start, end] = [notBefore.getTime(), notAfter.getTime()]
  const ratio = Math.min(1, Math.max(0, graceRatio + jitterRatio * jitter))
  return Math.max(0, end - (end - start) * ratio - nowMs)
}
