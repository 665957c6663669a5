// Where log lines go: a file descriptor written in the background, so that a slow or broken reader never holds up the process.
import { write, writeSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

export interface LogSink {
  /** Takes a line (with its newline), or so many lines at once, or, when the queue is full, drops and counts them. Never waits, never throws. */
  write(text: string, lines?: number): void
  /** Lines lost so far: the queue was full, or the descriptor refused them. */
  readonly dropped: number
  /** Resolves when everything taken so far was written or given up, or its reader takes nothing for half a second. */
  flush(): Promise<void>
  /** Writes what is queued at once, for the last words of a process. */
  flushSync(): void
}

export interface FdSinkOptions {
  readonly fd: number
  /** Lines waiting at most. */
  readonly maxLines?: number
  /** Characters waiting at most. */
  readonly maxLength?: number
  /** The line that tells of lost lines, once the reader follows again. */
  readonly dropReport?: (count: number) => string
}

const batchLength = 64 * 1024
const retryMs = 20
const lastRetries = 25
const lastWaitMs = lastRetries * retryMs
/** Soon after a write, lines are gathered for so long: a write for each turn of the event loop costs more than what it logs. */
const gatherMs = 20

const none = Buffer.alloc(0)

/** A sink on a file descriptor. Node writes to pipes synchronously through process.stdout; this one writes from the thread pool. */
export function createFdSink(options: FdSinkOptions): LogSink {
  const {
    fd,
    maxLines = 10_000,
    maxLength = 16 * 1024 * 1024,
    dropReport = (count) => `${count} log lines dropped\n`,
  } = options
  // Node makes its own streams' pipes non-blocking as it opens them. A write that waits for a reader would hold its thread of the pool,
  // and the process could not end without it.
  if (fd === 1) void process.stdout
  let queue: { readonly text: string; readonly lines: number }[] = []
  let queuedLines = 0
  let length = 0
  let dropped = 0
  let reported = 0
  let writing: Promise<void> | undefined
  let writtenAt = Number.NEGATIVE_INFINITY
  let inFlight: Buffer = none
  /** The descriptor took nothing: what is in flight is not being written now. */
  let isRefused = false
  let takenBytes = 0

  function takeBatch(): number {
    let text = ''
    let taken = 0
    let lines = 0
    if (dropped > reported && queuedLines < maxLines / 2) {
      text = dropReport(dropped - reported)
      reported = dropped
    }
    for (const entry of queue) {
      if (text.length >= batchLength) break
      text += entry.text
      length -= entry.text.length
      lines += entry.lines
      taken += 1
    }
    queue = queue.slice(taken)
    queuedLines -= lines
    inFlight = Buffer.from(text)
    return lines
  }

  async function drain(): Promise<void> {
    if (performance.now() - writtenAt < gatherMs) await delay(gatherMs)
    else await Promise.resolve()
    while (queue.length > 0) {
      const lines = takeBatch()
      while (inFlight.length > 0) {
        const outcome = await writeSome(fd, inFlight)
        if (outcome.kind === 'written') {
          takenBytes += outcome.bytes
          inFlight = inFlight.subarray(outcome.bytes)
        } else if (outcome.kind === 'again') {
          isRefused = true
          await delay(retryMs, undefined, { ref: false })
          isRefused = false
        } else {
          dropped += lines
          inFlight = inFlight.subarray(inFlight.length)
        }
      }
    }
    writtenAt = performance.now()
    writing = undefined
  }

  return {
    write(text, lines = 1) {
      if (queuedLines + lines > maxLines || length + text.length > maxLength) {
        dropped += lines
        return
      }
      queue.push({ text, lines })
      queuedLines += lines
      length += text.length
      writing ??= drain()
    },
    get dropped() {
      return dropped
    },
    async flush() {
      for (let before = -1; writing !== undefined && takenBytes > before; ) {
        before = takenBytes
        await atMost(lastWaitMs, writing)
      }
    },
    flushSync() {
      const queued = Buffer.from(queue.map(({ text }) => text).join(''))
      queue = []
      queuedLines = 0
      length = 0
      const refused = isRefused ? inFlight : none
      if (isRefused) inFlight = none
      writeAllSync(fd, Buffer.concat([refused, queued]))
    },
  }
}

/** The process does not end meanwhile. */
function atMost(ms: number, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    void work.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** Gives up when the reader is gone, or takes nothing for a while. */
function writeAllSync(fd: number, bytes: Buffer): void {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  let rest = bytes
  for (let waits = 0; rest.length > 0 && waits < lastRetries; ) {
    try {
      rest = rest.subarray(writeSync(fd, rest))
      waits = 0
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) return
      Atomics.wait(pause, 0, 0, retryMs)
      waits += 1
    }
  }
}

type WriteOutcome =
  | { readonly kind: 'written'; readonly bytes: number }
  | { readonly kind: 'again' }
  | { readonly kind: 'failed' }

function writeSome(fd: number, bytes: Buffer): Promise<WriteOutcome> {
  return new Promise((resolve) => {
    write(fd, bytes, (error, written) => {
      if (error === null) resolve({ kind: 'written', bytes: written })
      else if (error.code === 'EAGAIN' || error.code === 'EINTR') resolve({ kind: 'again' })
      else resolve({ kind: 'failed' })
    })
  })
}
