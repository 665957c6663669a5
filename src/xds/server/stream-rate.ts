// A token bucket for new streams, so that a mass reconnect is spread out.

export interface StreamRate {
  /** Resolves when the stream may go on; rejects after a second of waiting in vain. */
  admit(): Promise<void>
}

const longestWaitMs = 1_000

/** `perSecond` of 0 or less admits everything. */
export function createStreamRate(perSecond: number): StreamRate {
  let freeAt = 0
  return {
    async admit() {
      if (perSecond <= 0) return
      const now = performance.now()
      const waitMs = Math.max(0, freeAt - now)
      if (waitMs > longestWaitMs) throw new Error(`${Math.round(perSecond)} new streams a second are taken`)
      freeAt = Math.max(now, freeAt) + 1000 / perSecond
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
    },
  }
}
