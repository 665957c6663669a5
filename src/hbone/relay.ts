// Moves bytes both ways between two streams: half-close, back-pressure, resets, counts.
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { copyIntoTunnel, copyOutOfTunnel } from './relay-tunnel.ts'
import type { DirectBytes } from './types.ts'

/** One side of a relay. */
export interface RelayEnd {
  readonly stream: Duplex
  /** Of a tunnel: its bytes without the stream. */
  readonly direct?: DirectBytes
  /** Gives up both directions at once; the other side sees a reset. */
  reset(): void
  /** Whether the other side has broken off, where the stream itself does not tell that from an orderly end. */
  broken?(): boolean
}

export interface RelayCounts {
  /** Bytes read from the first end and handed to the second; and the reverse. Current at any time. */
  firstToSecond: number
  secondToFirst: number
}

/** Told of each chunk as it passes. */
export interface RelayObserver {
  firstToSecond(bytes: number): void
  secondToFirst(bytes: number): void
}

export interface RelayOutcome {
  /** What broke the relay; absent after a normal end, and after a reset by either side, which is one. */
  readonly error?: Error
  /** The end that broke; absent after an abort. */
  readonly brokenEnd?: 'first' | 'second'
}

export interface Relay {
  readonly counts: RelayCounts
  readonly done: Promise<RelayOutcome>
  /** Cuts both sides. `done` resolves with the error. */
  abort(error: Error): void
}

/** Ends that TCP and HTTP/2 peers bring about in ordinary life. */
const ordinary = new Set(['ENOTCONN', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ABORT_ERR', 'ERR_HTTP2_STREAM_CANCEL'])

/**
 * Copies until both directions have ended. A direction that ends half-closes the other side's writer and leaves the
 * opposite direction alone; a side that breaks off resets the other one. At most one chunk per direction waits here
 * beyond what the streams themselves hold.
 */
export function relay(first: RelayEnd, second: RelayEnd, observer?: RelayObserver): Relay {
  const counts: RelayCounts = { firstToSecond: 0, secondToFirst: 0 }
  const { promise: done, resolve } = Promise.withResolvers<RelayOutcome>()
  let open = 2
  let outcome: RelayOutcome = {}
  let aborted = false

  const closed = () => {
    open -= 1
    if (open === 0) resolve(outcome)
  }
  watch(first, second, 'first')
  watch(second, first, 'second')
  copy(first, second, (bytes) => {
    counts.firstToSecond += bytes
    observer?.firstToSecond(bytes)
  })
  copy(second, first, (bytes) => {
    counts.secondToFirst += bytes
    observer?.secondToFirst(bytes)
  })

  /** Follows one side to its close, and passes a broken side on to the other. */
  function watch(side: RelayEnd, other: RelayEnd, brokenEnd: 'first' | 'second'): void {
    const { stream } = side
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (!aborted && outcome.error === undefined && !ordinary.has(error.code ?? '')) outcome = { error, brokenEnd }
    })
    const onClose = () => {
      const whole = stream.readableEnded && stream.writableFinished && side.broken?.() !== true
      if (!whole && !other.stream.destroyed) {
        if (stream.readableEnded && other.stream.writableEnded) finish(other)
        else other.reset()
      }
      closed()
    }
    if (stream.closed) queueMicrotask(onClose)
    else stream.on('close', onClose)
  }

  return {
    counts,
    done,
    abort(error) {
      if (open === 0 || aborted) return
      aborted = true
      outcome = { error }
      first.reset()
      second.reset()
    },
  }
}

/** All that was read of the broken side is written or on its way: let it out, then close. */
function finish(end: RelayEnd): void {
  if (end.stream.writableFinished) end.stream.destroy()
  else end.stream.once('finish', () => end.stream.destroy())
}

function copy(from: RelayEnd, to: RelayEnd, count: (bytes: number) => void): void {
  // What was written before, such as a header of the relay's own, must stay before.
  if (from.stream instanceof Socket && to.direct !== undefined && to.stream.writableLength === 0) {
    copyIntoTunnel(from.stream, { stream: to.stream, direct: to.direct }, count)
  } else if (from.direct !== undefined && to.stream instanceof Socket) {
    copyOutOfTunnel({ stream: from.stream, direct: from.direct, broken: from.broken }, to.stream, count)
  } else {
    copyStream(from, to.stream, count)
  }
}

function copyStream({ stream: from, broken }: RelayEnd, to: Duplex, count: (bytes: number) => void): void {
  // A tunnel hands over frame by frame: what arrives in one turn of the event loop is written in one system call.
  let corked = false
  const flush = () => {
    corked = false
    to.uncork()
  }
  const resume = () => from.resume()
  from.on('data', (chunk: Buffer) => {
    count(chunk.length)
    if (!corked) {
      corked = true
      to.cork()
      setImmediate(flush)
    }
    if (!to.write(chunk)) from.pause()
  })
  from.on('end', () => {
    if (broken?.() !== true) to.end()
  })
  to.on('drain', resume)
  from.resume()
}
