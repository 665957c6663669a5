// Time as the certificates' owner reads it; tests hand in their own.

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  setTimeout(callback: () => void, delayMs: number): unknown
  clearTimeout(timer: unknown): void
}

const longestDelayMs = 2 ** 31 - 1

/** The machine's clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, delayMs) => setTimeout(callback, Math.min(delayMs, longestDelayMs)).unref(),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
}
