// How often a peer may do what costs us something: a burst at once, and then so many a second.

export interface Allowance {
  readonly of: string
  /** False when it is used up. */
  take(): boolean
}

export function createAllowance(
  of: string,
  { burst, perSecond }: { readonly burst: number; readonly perSecond: number },
  now: () => number = () => performance.now(),
): Allowance {
  let left = burst
  let at = now()
  return {
    of,
    take() {
      const time = now()
      left = Math.min(burst, left + ((time - at) / 1000) * perSecond)
      at = time
      if (left < 1) return false
      left -= 1
      return true
    },
  }
}
