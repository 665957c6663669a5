// How long a graph computes at a stretch before other work has its turn.

export interface Pace {
  /** Asked between two steps of a wave; true: pause here. */
  readonly shouldPause: () => boolean
  /** Calls back in a later turn of the event loop, when there is time to go on. */
  readonly later: (resume: () => void) => void
}

/** Computes at most about so many milliseconds in one turn of the event loop, however many waves there are. */
export function pacedBy(sliceMs: number): Pace {
  let until: number | undefined
  const newTurn = (): void => {
    until = undefined
  }
  return {
    shouldPause() {
      const now = performance.now()
      if (until === undefined) {
        until = now + sliceMs
        setImmediate(newTurn)
      }
      return now >= until
    },
    later(resume) {
      setImmediate(() => {
        newTurn()
        resume()
      })
    },
  }
}
