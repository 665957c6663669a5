// Bounds the bytes on their way to clients that have not taken them yet, over all streams.

export interface SendBudget {
  /** Runs `send` when there is room. It returns the size it put on the way and must call `sent` once those bytes are gone. */
  enter(send: (sent: () => void) => number): void
  readonly inFlight: number
}

/** After this long a message no longer holds back others: its reader is slow, not the network. */
const patienceMs = 2_000

export function createSendBudget(maxBytes: number): SendBudget {
  const waiting: ((sent: () => void) => number)[] = []
  let inFlight = 0

  function start(send: (sent: () => void) => number): void {
    let size = 0
    let counted = false
    let finished = false
    const timer = setTimeout(release, patienceMs)
    timer.unref()
    function release(): void {
      clearTimeout(timer)
      finished = true
      if (!counted) return
      counted = false
      inFlight -= size
      next()
    }
    size = send(release)
    if (finished) return
    counted = true
    inFlight += size
  }

  function next(): void {
    while (inFlight < maxBytes) {
      const send = waiting.shift()
      if (send === undefined) return
      start(send)
    }
  }

  return {
    enter(send) {
      if (inFlight < maxBytes && waiting.length === 0) start(send)
      else waiting.push(send)
    },
    get inFlight() {
      return inFlight
    },
  }
}
