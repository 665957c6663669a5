// A clock that moves only when told, for tests of what happens over time.

export interface VirtualClock {
  now(): number
  setTimeout(callback: () => void, delayMs: number): unknown
  clearTimeout(timer: unknown): void
  /** Moves to this time, running every timer on the way at its own time, with the promises each one settles. */
  advanceTo(timeMs: number): Promise<void>
  advanceBy(delayMs: number): Promise<void>
  /** Timers waiting: what a closed owner must not leave behind. */
  readonly pending: number
}

export function createVirtualClock(startMs = 0): VirtualClock {
  let time = startMs
  let sequence = 0
  const timers = new Map<number, { readonly at: number; readonly callback: () => void }>()

  async function advanceTo(timeMs: number): Promise<void> {
    await settle()
    for (;;) {
      const [due] = [...timers].sort(([a, one], [b, other]) => one.at - other.at || a - b)
      if (due === undefined || due[1].at > timeMs) break
      timers.delete(due[0])
      time = Math.max(time, due[1].at)
      due[1].callback()
      await settle()
    }
    time = timeMs
  }

  return {
    now: () => time,
    setTimeout(callback, delayMs) {
      sequence += 1
      timers.set(sequence, { at: time + Math.max(0, delayMs), callback })
      return sequence
    },
    clearTimeout(timer) {
      timers.delete(timer as number)
    },
    advanceTo,
    advanceBy: (delayMs) => advanceTo(time + delayMs),
    get pending() {
      return timers.size
    },
  }
}

/** Lets every promise that is ready run, and those they make ready. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
