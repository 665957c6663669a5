// One stream of a session: what is known of it, what its owner is told and may ask for.
import type { HeaderField } from './hpack.ts'

/** What a stream's owner is told. */
export interface StreamEvents {
  /** A header block that is neither informational nor trailers. */
  headers(fields: readonly HeaderField[], endStream: boolean): void
  /** Bytes of the peer, valid during the call only. To be told `consumed` in the end. */
  part(bytes: Buffer): void
  /** The peer sends no more. */
  end(): void
  /** What was held back is on its way: more may be sent. */
  ready(): void
  /** The stream is over. `code` is set when it was reset, or the connection broke. */
  closed(code: number | undefined, error: Error | undefined): void
}

export interface SessionStream {
  readonly id: number
  headers(fields: readonly HeaderField[], endStream: boolean): void
  /** Takes all of it, copied where it cannot go out at once; false: wait for `ready`. `framed` holds the bytes behind room for a frame header. */
  send(bytes: Buffer, framed?: Buffer): boolean
  /** After what was sent so far; `done` is called when it is on its way. */
  end(done: () => void): void
  consumed(bytes: number): void
  reset(code: number): void
}

export interface PendingBytes {
  bytes: Buffer
}

export interface Stream {
  readonly id: number
  sendWindow: number
  receiveWindow: number
  /** Received and not yet consumed; consumed and not yet given back to the peer's window. */
  unconsumed: number
  uncredited: number
  readonly queue: PendingBytes[]
  endDue: (() => void) | undefined
  endSent: boolean
  endReceived: boolean
  headersReceived: boolean
  /** Of a server: the answer is out. */
  answered: boolean
  closed: boolean
  /** The owner was asked to wait. */
  blocked: boolean
  events: StreamEvents
}

export function createStream(id: number, windows: { send: number; receive: number }, events: StreamEvents): Stream {
  return {
    id,
    sendWindow: windows.send,
    receiveWindow: windows.receive,
    unconsumed: 0,
    uncredited: 0,
    queue: [],
    endDue: undefined,
    endSent: false,
    endReceived: false,
    headersReceived: false,
    answered: false,
    closed: false,
    blocked: false,
    events,
  }
}

/** For a stream whose owner is not known yet. */
export const noEvents: StreamEvents = {
  headers: () => undefined,
  part: () => undefined,
  end: () => undefined,
  ready: () => undefined,
  closed: () => undefined,
}
