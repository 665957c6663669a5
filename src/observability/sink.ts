// Where log lines go: a file descriptor written in the background, so that a slow or broken reader never holds up the process.
import { write, writeSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

export interface LogSink {
  /** Takes a line (with its newline) or, when the queue is full, drops and counts it. Never waits, never throws. */
  write(line: string): void
  /** Lines lost so far: the queue was full, or the descriptor refused them. */
  readonly dropped: number
  /** Resolves when everything taken so far was written or given up. */
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

/** A sink on a file descriptor. Node writes to pipes synchronously through process.stdout; this one writes from the thread pool. */
export function createFdSink(options: FdSinkOptions): LogSink {
  const {
    fd,
    maxLines = 10_000,
    maxLength = 16 * 1024 * 1024,
    dropReport = (count) => `${count} log lines dropped\n`,
  } = options
  let queue: string[] = []
  let length = 0
  let dropped = 0
  let reported = 0
  let writing: Promise<void> | undefined
  let inFlight: Buffer = Buffer.alloc(0)

  function takeBatch(): Buffer {
    let text = ''
    let taken = 0
    if (dropped > reported && queue.length < maxLines / 2) {
      text = dropReport(dropped - reported)
      reported = dropped
    }
    while (taken < queue.length && text.length < batchLength) text += queue[taken++]
    const lines = queue.slice(0, taken)
    queue = queue.slice(taken)
    for (const line of lines) length -= line.length
    return Buffer.from(text)
  }

  async function drain(): Promise<void> {
    await Promise.resolve()
    while (queue.length > 0) {
      const lines = queue.length
      inFlight = takeBatch()
      const taken = lines - queue.length
      while (inFlight.length > 0) {
        const outcome = await writeSome(fd, inFlight)
        if (outcome.kind === 'written') inFlight = inFlight.subarray(outcome.bytes)
        else if (outcome.kind === 'again') await delay(retryMs, undefined, { ref: false })
        else {
          dropped += taken
          inFlight = inFlight.subarray(inFlight.length)
        }
      }
    }
    writing = undefined
  }

  return {
    write(line) {
      if (queue.length >= maxLines || length + line.length > maxLength) {
        dropped += 1
        return
      }
      queue.push(line)
      length += line.length
      writing ??= drain()
    },
    get dropped() {
      return dropped
    },
    async flush() {
      while (writing !== undefined) await writing
    },
    flushSync() {
      const rest = Buffer.from(queue.join(''))
      queue = []
      length = 0
      try {
        writeSync(fd, rest)
      } catch {
        // The reader is gone or full, and this process is about to be.
      }
    },
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
