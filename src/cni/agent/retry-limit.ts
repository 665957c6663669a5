// How many repetitions the agent makes in all, whatever the number of pods: a burst, then a steady rate.

export interface RetryLimitOptions {
  readonly perSecond: number
  readonly burst: number
  /** Milliseconds; performance.now by default. */
  readonly now?: () => number
}

/** Returns a function that takes the next turn and tells how many milliseconds it is away. */
export function createRetryLimit({ perSecond, burst, now = () => performance.now() }: RetryLimitOptions): () => number {
  const intervalMs = 1000 / perSecond
  /** When the steady rate would have the next turn; the burst may be that far ahead of it. */
  let turn = now()
  return () => {
    turn = Math.max(turn, now()) + intervalMs
    return Math.max(0, turn - now() - burst * intervalMs)
  }
}
