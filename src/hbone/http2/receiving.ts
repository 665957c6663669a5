// What arrives on an HTTP/2 connection: the preface, and then each frame, checked and applied to its stream or to the connection.
// Whatever breaks the protocol of the whole connection is thrown as an Http2ConnectionError.
import type { Http2Options } from '../types.ts'
import { type Allowance, createAllowance } from './allowance.ts'
import { errorCode, flag, frameType, Http2ConnectionError, mostWindowBytes, preface } from './constants.ts'
import type { Credit } from './credit.ts'
import { createFrameReader, type Frame } from './frame-reader.ts'
import { headerFragment, isRequest, isWellFormed } from './header-rules.ts'
import { createHpackDecoder, type HeaderField } from './hpack.ts'
import type { Sender } from './sender.ts'
import { applySettings, type PeerSettings } from './settings.ts'
import { noEvents, type SessionStream, type Stream, type StreamEvents } from './stream.ts'
import type { FrameWriter } from './writer.ts'

export interface ReceivingOptions {
  readonly role: 'client' | 'server'
  readonly http2: Http2Options
  readonly maxHeaderListBytes: number
  /** Of a server: how many streams the client may have open. */
  readonly maxConcurrentStreams?: number
  /** The peer's first SETTINGS have arrived. */
  readonly onSettings?: () => void
  /** A new stream of the client. Returns who is told of it. */
  readonly onStream?: (stream: SessionStream, fields: readonly HeaderField[], endStream: boolean) => StreamEvents
  /** The number of streams or whether the session takes new ones may have changed. */
  readonly onChange: () => void
}

/** What receiving needs of the session it belongs to. */
export interface ReceivingSession {
  readonly peer: PeerSettings
  readonly streams: ReadonlyMap<number, Stream>
  readonly writer: FrameWriter
  readonly sender: Sender
  readonly credit: Credit
  /** The id of the next stream this side opens. */
  nextStreamId(): number
  /** The last GOAWAY is out: what the peer opens from now on is not served. */
  goodbyeSent(): boolean
  addStream(id: number, events: StreamEvents): Stream
  portOf(stream: Stream): SessionStream
  sendReset(streamId: number, code: number): void
  close(stream: Stream, code: number | undefined, error?: Error): void
  closeIfDone(stream: Stream): void
  takePong(): void
  peerLeaves(): void
  endIfDone(): void
}

export interface Receiving {
  /** The highest stream the peer has opened. */
  readonly lastPeerStreamId: number
  take(bytes: Buffer): void
}

const mostHeaderBlockBytes = 128 * 1024
/** Answers that the peer leaves unread. One that reads leaves a few of some tens of bytes each. */
const mostWaitingControlBytes = 512 * 1024

export function createReceiving(options: ReceivingOptions, session: ReceivingSession): Receiving {
  const { http2 } = options
  const { peer, streams, writer, sender, credit, addStream, portOf, sendReset, close, closeIfDone } = session
  const server = options.role === 'server'
  const hpack = createHpackDecoder(options.maxHeaderListBytes)
  let prefaceDue = server ? preface : preface.subarray(0, 0)
  let settingsReceived = false
  let lastPeerStreamId = 0
  let block: { readonly frame: Frame; parts: Buffer[]; bytes: number } | undefined
  const resets = createAllowance('streams given up before their answer', { burst: 1000, perSecond: 33 })
  const replies = createAllowance('pings and settings to answer', { burst: 10_000, perSecond: 1000 })

  function dataStart(streamId: number, length: number): void {
    if (block !== undefined) throw protocolError('DATA within a header block')
    credit.take(length)
    const stream = streams.get(streamId)
    if (stream === undefined) {
      if (isIdle(streamId)) throw protocolError('DATA on an idle stream')
      return
    }
    stream.receiveWindow -= length
    if (stream.endReceived || !stream.headersReceived) resetStream(stream, errorCode.streamClosed)
    else if (stream.receiveWindow < 0) resetStream(stream, errorCode.flowControlError)
  }

  function resetStream(stream: Stream, code: number): void {
    if (server && !stream.answered) spend(resets)
    sendReset(stream.id, code)
    close(stream, code, new Error(`the peer broke the protocol on a stream (code ${code})`))
  }

  const isIdle = (streamId: number) =>
    server === (streamId % 2 === 1) ? streamId > lastPeerStreamId : server || streamId >= session.nextStreamId()

  const read = createFrameReader(
    {
      dataStart,
      dataPart(streamId, part) {
        const stream = streams.get(streamId)
        if (stream === undefined) {
          credit.give(part.length)
          return
        }
        stream.unconsumed += part.length
        stream.events.part(part)
      },
      dataEnd(streamId, padding, endStream) {
        const stream = streams.get(streamId)
        credit.give(padding)
        if (stream === undefined) return
        stream.uncredited += padding
        if (endStream) endReceived(stream)
      },
      frame: takeFrame,
    },
    http2.maxFrameBytes,
  )

  function endReceived(stream: Stream): void {
    stream.endReceived = true
    stream.events.end()
    closeIfDone(stream)
  }

  function takeFrame(frame: Frame): void {
    const { type, flags, streamId, payload } = frame
    if (!settingsReceived && type !== frameType.settings) throw protocolError('the first frame is not SETTINGS')
    if (block !== undefined && (type !== frameType.continuation || streamId !== block.frame.streamId)) {
      throw protocolError('a header block is interrupted')
    }
    switch (type) {
      case frameType.headers:
        if (streamId === 0) throw protocolError('HEADERS without a stream')
        block = { frame, parts: [], bytes: 0 }
        takeBlock(headerFragment(frame), (flags & flag.endHeaders) !== 0)
        return
      case frameType.continuation:
        if (block === undefined) throw protocolError('CONTINUATION without HEADERS')
        takeBlock(payload, (flags & flag.endHeaders) !== 0)
        return
      case frameType.priority:
        if (streamId === 0) throw protocolError('PRIORITY without a stream')
        return
      case frameType.rstStream:
        takeReset(streamId, payload)
        return
      case frameType.settings:
        takeSettings(frame)
        return
      case frameType.ping:
        if (streamId !== 0) throw protocolError('PING on a stream')
        if (payload.length !== 8) throw wrongLength('PING')
        if ((flags & flag.ack) !== 0) {
          session.takePong()
          return
        }
        spend(replies)
        writer.frame(frameType.ping, flag.ack, 0, payload)
        return
      case frameType.goaway:
        takeGoaway(frame)
        return
      case frameType.windowUpdate:
        takeWindowUpdate(streamId, payload)
        return
      case frameType.pushPromise:
        throw protocolError('PUSH_PROMISE although push is off')
    }
  }

  function takeBlock(fragment: Buffer, last: boolean): void {
    if (block === undefined) return
    block.bytes += fragment.length
    if (block.bytes > mostHeaderBlockBytes || block.parts.length > 64)
      throw new Http2ConnectionError(errorCode.enhanceYourCalm, 'headers without end')
    if (!last) {
      block.parts.push(Buffer.from(fragment))
      return
    }
    const { frame, parts } = block
    block = undefined
    const { fields, tooLarge } = hpack.decode(parts.length === 0 ? fragment : Buffer.concat([...parts, fragment]))
    takeHeaders(frame, fields, tooLarge)
  }

  function takeHeaders({ streamId, flags }: Frame, fields: readonly HeaderField[], tooLarge: boolean): void {
    const endStream = (flags & flag.endStream) !== 0
    const stream = streams.get(streamId)
    if (stream !== undefined) {
      if (stream.endReceived) {
        resetStream(stream, errorCode.streamClosed)
        return
      }
      if (tooLarge) {
        resetStream(stream, errorCode.enhanceYourCalm)
        return
      }
      if (stream.headersReceived) {
        // Trailers carry nothing for a tunnel but its end.
        if (!endStream) {
          resetStream(stream, errorCode.protocolError)
          return
        }
        endReceived(stream)
        return
      }
      if (!isWellFormed(fields)) {
        resetStream(stream, errorCode.protocolError)
        return
      }
      const status = fields.find(([name]) => name === ':status')?.[1] ?? ''
      if (!/^[1-5]\d\d$/.test(status) || (status.startsWith('1') && endStream)) {
        resetStream(stream, errorCode.protocolError)
        return
      }
      if (status.startsWith('1')) return
      stream.headersReceived = true
      stream.events.headers(fields, endStream)
      if (endStream && !stream.closed) endReceived(stream)
      return
    }
    if (!server || streamId % 2 === 0) {
      if (isIdle(streamId)) throw protocolError('HEADERS on an idle stream')
      return
    }
    // A stream that is over: what was on its way when we reset it.
    if (streamId <= lastPeerStreamId) return
    if (session.goodbyeSent()) return
    lastPeerStreamId = streamId
    const refusal = refusalOf(fields, tooLarge)
    if (refusal !== undefined) {
      spend(resets)
      sendReset(streamId, refusal)
      return
    }
    const opened = addStream(streamId, noEvents)
    opened.headersReceived = true
    opened.endReceived = endStream
    opened.events = options.onStream?.(portOf(opened), fields, endStream) ?? noEvents
    if (endStream) opened.events.end()
    options.onChange()
  }

  /** The code with which a new stream is reset, if it is not to be. */
  function refusalOf(fields: readonly HeaderField[], tooLarge: boolean): number | undefined {
    if (streams.size >= (options.maxConcurrentStreams ?? Number.POSITIVE_INFINITY)) return errorCode.refusedStream
    if (tooLarge) return errorCode.enhanceYourCalm
    return isWellFormed(fields) && isRequest(fields) ? undefined : errorCode.protocolError
  }

  function takeReset(streamId: number, payload: Buffer): void {
    if (payload.length !== 4) throw wrongLength('RST_STREAM')
    if (streamId === 0 || isIdle(streamId)) throw protocolError('RST_STREAM on an idle stream')
    const stream = streams.get(streamId)
    if (stream === undefined) return
    const code = payload.readUInt32BE(0)
    if (server && !stream.answered) spend(resets)
    close(stream, code)
  }

  function spend(allowance: Allowance): void {
    if (!allowance.take()) throw new Http2ConnectionError(errorCode.enhanceYourCalm, `too many ${allowance.of}`)
  }

  function takeSettings({ flags, streamId, payload }: Frame): void {
    if (streamId !== 0) throw protocolError('SETTINGS on a stream')
    if ((flags & flag.ack) !== 0) {
      if (payload.length > 0) throw wrongLength('SETTINGS')
      if (!settingsReceived) throw protocolError('the first SETTINGS is an acknowledgement')
      return
    }
    const windowBefore = peer.initialWindowBytes
    applySettings(payload, peer)
    spend(replies)
    writer.frame(frameType.settings, flag.ack, 0, Buffer.alloc(0))
    for (const stream of streams.values()) {
      stream.sendWindow += peer.initialWindowBytes - windowBefore
      if (stream.sendWindow > mostWindowBytes) {
        throw new Http2ConnectionError(errorCode.flowControlError, 'a window too large')
      }
    }
    sender.pumpAll()
    if (settingsReceived) {
      options.onChange()
      return
    }
    settingsReceived = true
    options.onSettings?.()
  }

  function takeGoaway({ streamId, payload }: Frame): void {
    if (streamId !== 0) throw protocolError('GOAWAY on a stream')
    if (payload.length < 8) throw wrongLength('GOAWAY')
    const last = payload.readUInt32BE(0) & mostWindowBytes
    session.peerLeaves()
    if (!server) {
      for (const stream of [...streams.values()]) if (stream.id > last) close(stream, errorCode.refusedStream)
    }
    options.onChange()
    session.endIfDone()
  }

  function takeWindowUpdate(streamId: number, payload: Buffer): void {
    if (payload.length !== 4) throw wrongLength('WINDOW_UPDATE')
    const bytes = payload.readUInt32BE(0) & mostWindowBytes
    if (streamId === 0) {
      if (bytes === 0) throw protocolError('WINDOW_UPDATE of nothing')
      if (sender.widen(bytes) > mostWindowBytes) {
        throw new Http2ConnectionError(errorCode.flowControlError, 'a window too large')
      }
      sender.pumpAll()
      return
    }
    const stream = streams.get(streamId)
    if (stream === undefined) {
      if (isIdle(streamId)) throw protocolError('WINDOW_UPDATE on an idle stream')
      return
    }
    if (bytes === 0) {
      resetStream(stream, errorCode.protocolError)
      return
    }
    stream.sendWindow += bytes
    if (stream.sendWindow > mostWindowBytes) {
      resetStream(stream, errorCode.flowControlError)
      return
    }
    if (stream.queue.length > 0) sender.pump(stream)
  }

  return {
    get lastPeerStreamId() {
      return lastPeerStreamId
    },
    take(bytes) {
      if (writer.waitingControlBytes > mostWaitingControlBytes) {
        throw new Http2ConnectionError(errorCode.enhanceYourCalm, 'the peer does not read its answers')
      }
      let rest = bytes
      if (prefaceDue.length > 0) {
        const length = Math.min(prefaceDue.length, rest.length)
        if (!rest.subarray(0, length).equals(prefaceDue.subarray(0, length))) throw protocolError('no HTTP/2 preface')
        prefaceDue = prefaceDue.subarray(length)
        rest = rest.subarray(length)
      }
      if (rest.length > 0) read(rest)
    },
  }
}

const protocolError = (message: string) => new Http2ConnectionError(errorCode.protocolError, message)
const wrongLength = (frame: string) => new Http2ConnectionError(errorCode.frameSizeError, `${frame} of a wrong length`)
