// The sending half of flow control: what the peer's windows allow goes to the writer, the rest waits with its stream.
import { flag, frameType, initialWindowBytes } from './constants.ts'
import type { PeerSettings } from './settings.ts'
import type { Stream } from './stream.ts'
import type { FrameWriter } from './writer.ts'

const empty = Buffer.alloc(0)

export interface Sender {
  /** The peer's window for the connection lets nothing out. */
  readonly exhausted: boolean
  /** Takes all of it; false: the stream's owner has to wait until it is told `ready`. */
  send(stream: Stream, bytes: Buffer, framed?: Buffer): boolean
  /** After what waits; `done` is called when the end is on its way. */
  end(stream: Stream, done: () => void): void
  /** The stream's window has grown. */
  pump(stream: Stream): void
  pumpAll(): void
  /** The writer has room again. */
  relieve(): void
  /** The connection's window, as the peer lets it grow. Returns its new size. */
  widen(bytes: number): number
  forget(stream: Stream): void
}

/** `onEnd` is called for a stream whose end has been sent. */
export function createSender(
  given: { readonly writer: FrameWriter; readonly peer: PeerSettings; readonly streams: ReadonlyMap<number, Stream> },
  onEnd: (stream: Stream) => void,
): Sender {
  const { writer, peer, streams } = given
  const blocked = new Set<Stream>()
  let sendWindow = initialWindowBytes

  function send(stream: Stream, bytes: Buffer, framed?: Buffer): boolean {
    if (stream.closed || stream.endSent) return true
    const length = bytes.length
    if (stream.queue.length > 0 || length > stream.sendWindow || length > sendWindow) {
      stream.queue.push({ bytes: Buffer.from(bytes) })
      pump(stream)
    } else {
      stream.sendWindow -= length
      sendWindow -= length
      if (framed !== undefined && length <= peer.maxFrameBytes && writer.idle) {
        writer.direct(stream.id, framed, length)
      } else {
        sendFrames(stream, bytes)
      }
    }
    if (stream.queue.length === 0 && !writer.congested) return true
    stream.blocked = true
    blocked.add(stream)
    return false
  }

  function sendFrames(stream: Stream, bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += peer.maxFrameBytes) {
      writer.data(stream.id, 0, bytes.subarray(at, at + peer.maxFrameBytes))
    }
  }

  /** Sends of what waits for the windows as much as they allow. */
  function pump(stream: Stream): void {
    for (;;) {
      const first = stream.queue[0]
      if (first === undefined) break
      const length = Math.min(first.bytes.length, stream.sendWindow, sendWindow)
      if (length <= 0) return
      stream.sendWindow -= length
      sendWindow -= length
      sendFrames(stream, first.bytes.subarray(0, length))
      if (length === first.bytes.length) stream.queue.shift()
      else first.bytes = first.bytes.subarray(length)
    }
    if (stream.endDue !== undefined) finishSending(stream, stream.endDue)
    else wake(stream)
  }

  function wake(stream: Stream): void {
    if (!stream.blocked || stream.queue.length > 0 || writer.congested) return
    stream.blocked = false
    blocked.delete(stream)
    stream.events.ready()
  }

  function relieve(): void {
    for (const stream of [...blocked]) wake(stream)
  }

  function pumpAll(): void {
    for (const stream of [...streams.values()]) if (stream.queue.length > 0) pump(stream)
  }

  function finishSending(stream: Stream, done: () => void): void {
    stream.endDue = undefined
    stream.endSent = true
    // Nobody waits for an end as for bytes: it goes out with what else this turn brings.
    writer.frame(frameType.data, flag.endStream, stream.id, empty)
    done()
    onEnd(stream)
  }

  return {
    get exhausted() {
      return sendWindow <= 0
    },
    send,
    end(stream, done) {
      if (stream.closed || stream.endSent) done()
      else if (stream.queue.length === 0) finishSending(stream, done)
      else stream.endDue = done
    },
    pump,
    pumpAll,
    relieve,
    widen(bytes) {
      sendWindow += bytes
      return sendWindow
    },
    forget: (stream) => void blocked.delete(stream),
  }
}
