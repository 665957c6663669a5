// One HTTP/2 connection over an established TLS socket, for CONNECT streams: settings, flow control, pings, goodbyes (RFC 9113).
import type { Socket } from 'node:net'
import { readInto } from '../read-into.ts'
import type { Http2Options } from '../types.ts'
import { type Allowance, createAllowance } from './allowance.ts'
import {
  errorCode,
  flag,
  frameType,
  Http2ConnectionError,
  initialWindowBytes,
  leastMaxFrameBytes,
  mostWindowBytes,
  preface,
  setting,
} from './constants.ts'
import { createCredit } from './credit.ts'
import { createFrameReader, type Frame } from './frame-reader.ts'
import { headerFragment, isRequest, isWellFormed } from './header-rules.ts'
import { createHpackDecoder, encodeHeaders, type HeaderField } from './hpack.ts'
import { createPings } from './pings.ts'
import { createSender } from './sender.ts'
import { applySettings, encodeSettings, type PeerSettings } from './settings.ts'
import { createStream, noEvents, type SessionStream, type Stream, type StreamEvents } from './stream.ts'
import { createFrameWriter } from './writer.ts'

export interface SessionOptions {
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
  readonly onPingTimeout: () => void
}

export interface Session {
  readonly peer: Readonly<PeerSettings>
  readonly activeStreams: number
  /** New streams can be opened: neither side is leaving. */
  readonly open: boolean
  /** Resolves when the socket is closed. */
  readonly closed: Promise<void>
  /** Why the session broke, if it did. */
  readonly failure: Error | undefined
  openStream(fields: readonly HeaderField[], events: StreamEvents): SessionStream
  /** No new streams; those in progress go on, and then the connection ends. */
  leave(): void
  destroy(error?: Error): void
}

const readBuffer = Buffer.allocUnsafeSlow(64 * 1024)
const mostHeaderBlockBytes = 128 * 1024
const lingerMs = 5_000

/** Speaks HTTP/2 on the socket, which it owns from now on. */
export function createSession(socket: Socket, options: SessionOptions): Session {
  const { role, http2 } = options
  const server = role === 'server'
  const peer: PeerSettings = {
    maxConcurrentStreams: Number.POSITIVE_INFINITY,
    initialWindowBytes,
    maxFrameBytes: leastMaxFrameBytes,
  }
  const streams = new Map<number, Stream>()
  const writer = createFrameWriter(socket, () => sender.relieve())
  const sender = createSender({ writer, peer, streams }, closeIfDone)
  const hpack = createHpackDecoder(options.maxHeaderListBytes)
  let prefaceDue = server ? preface : preface.subarray(0, 0)
  let settingsReceived = false
  const credit = createCredit(http2, sendWindowUpdate)
  let nextStreamId = 1
  let lastPeerStreamId = 0
  let block: { readonly frame: Frame; parts: Buffer[]; bytes: number } | undefined
  let leaving = false
  let goodbyeSent = false
  let peerLeaving = false
  let failure: Error | undefined
  let destroyed = false
  const pings = createPings(http2, {
    send: (payload) => writer.frame(frameType.ping, 0, 0, payload),
    onDead() {
      options.onPingTimeout()
      fail(new Http2ConnectionError(errorCode.noError, 'no answer to a ping'))
    },
  })
  let linger: NodeJS.Timeout | undefined
  const resets = createAllowance('streams given up before their answer', { burst: 1000, perSecond: 33 })
  const replies = createAllowance('pings and settings to answer', { burst: 10_000, perSecond: 1000 })
  const closed = Promise.withResolvers<void>()

  // ---- sending

  function sendHeaders(stream: Stream, fields: readonly HeaderField[], endStream: boolean): void {
    stream.answered = true
    const encoded = encodeHeaders(fields)
    const first = encoded.subarray(0, peer.maxFrameBytes)
    const more = encoded.length > first.length
    writer.frame(frameType.headers, (endStream ? flag.endStream : 0) | (more ? 0 : flag.endHeaders), stream.id, first)
    for (let at = first.length; at < encoded.length; at += peer.maxFrameBytes) {
      const part = encoded.subarray(at, at + peer.maxFrameBytes)
      const last = at + part.length === encoded.length
      writer.frame(frameType.continuation, last ? flag.endHeaders : 0, stream.id, part)
    }
    if (!endStream) return
    stream.endSent = true
    closeIfDone(stream)
  }

  function sendReset(streamId: number, code: number): void {
    const payload = Buffer.alloc(4)
    payload.writeUInt32BE(code)
    writer.frame(frameType.rstStream, 0, streamId, payload)
  }

  function sendGoaway(lastStreamId: number, code: number): void {
    const payload = Buffer.alloc(8)
    payload.writeUInt32BE(lastStreamId)
    payload.writeUInt32BE(code, 4)
    writer.frame(frameType.goaway, 0, 0, payload)
  }

  function sendWindowUpdate(streamId: number, bytes: number): void {
    const payload = Buffer.alloc(4)
    payload.writeUInt32BE(bytes)
    writer.frame(frameType.windowUpdate, 0, streamId, payload)
  }

  // ---- streams

  function addStream(id: number, events: StreamEvents): Stream {
    const stream = createStream(
      id,
      { send: peer.initialWindowBytes, receive: Math.max(http2.streamWindowBytes, initialWindowBytes) },
      events,
    )
    streams.set(id, stream)
    return stream
  }

  function portOf(stream: Stream): SessionStream {
    return {
      id: stream.id,
      headers: (fields, endStream) => {
        if (!stream.closed) sendHeaders(stream, fields, endStream)
      },
      send: (bytes, framed) => sender.send(stream, bytes, framed),
      end: (done) => sender.end(stream, done),
      consumed: (bytes) => credit.consumed(stream, bytes),
      reset(code) {
        if (stream.closed) return
        sendReset(stream.id, code)
        close(stream, code)
      },
    }
  }

  function closeIfDone(stream: Stream): void {
    if (stream.endSent && stream.endReceived) close(stream, undefined)
  }

  function close(stream: Stream, code: number | undefined, error?: Error): void {
    if (stream.closed) return
    stream.closed = true
    streams.delete(stream.id)
    sender.forget(stream)
    stream.queue.length = 0
    if (!destroyed) credit.give(stream.unconsumed)
    stream.events.closed(code, error)
    const { endDue } = stream
    stream.endDue = undefined
    endDue?.()
    options.onChange()
    endIfDone()
  }

  // ---- receiving

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
    sendReset(stream.id, code)
    close(stream, code, new Error(`the peer broke the protocol on a stream (code ${code})`))
  }

  const isIdle = (streamId: number) =>
    server === (streamId % 2 === 1) ? streamId > lastPeerStreamId : server || streamId >= nextStreamId

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
          takePong()
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
    if (goodbyeSent) return
    lastPeerStreamId = streamId
    if (streams.size >= (options.maxConcurrentStreams ?? Number.POSITIVE_INFINITY)) {
      sendReset(streamId, errorCode.refusedStream)
      return
    }
    if (tooLarge) {
      sendReset(streamId, errorCode.enhanceYourCalm)
      return
    }
    if (!isWellFormed(fields) || !isRequest(fields)) {
      sendReset(streamId, errorCode.protocolError)
      return
    }
    const opened = addStream(streamId, noEvents)
    opened.headersReceived = true
    opened.endReceived = endStream
    opened.events = options.onStream?.(portOf(opened), fields, endStream) ?? noEvents
    if (endStream) opened.events.end()
    options.onChange()
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
    peerLeaving = true
    if (!server) {
      for (const stream of [...streams.values()]) if (stream.id > last) close(stream, errorCode.refusedStream)
    }
    options.onChange()
    endIfDone()
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

  // ---- pings and the end

  function takePong(): void {
    // The client has seen our goodbye: whatever it opened before has arrived.
    if (leaving && server && !goodbyeSent) sayLastGoodbye()
    if (destroyed) return
    pings.answered()
  }

  function sayLastGoodbye(): void {
    goodbyeSent = true
    sendGoaway(lastPeerStreamId, errorCode.noError)
    endIfDone()
  }

  function endIfDone(): void {
    if (destroyed || streams.size > 0 || linger !== undefined) return
    if (!((leaving && goodbyeSent) || (peerLeaving && !server))) return
    if (!goodbyeSent) {
      goodbyeSent = true
      sendGoaway(lastPeerStreamId, errorCode.noError)
    }
    // Cutting the socket while the peer still sends would make it lose what it has not read yet.
    linger = setTimeout(() => destroy(), lingerMs)
    writer.end()
  }

  /** Tells the peer what is wrong, and cuts the connection. */
  function fail(error: Error): void {
    if (destroyed) return
    const code = error instanceof Http2ConnectionError ? error.code : errorCode.internalError
    sendGoaway(lastPeerStreamId, code)
    writer.flush()
    destroy(error)
  }

  function destroy(error?: Error): void {
    if (destroyed) return
    destroyed = true
    failure = error
    pings.close()
    clearTimeout(linger)
    writer.close()
    for (const stream of [...streams.values()]) close(stream, errorCode.cancel, error)
    socket.destroy()
    options.onChange()
  }

  function receive(bytes: Buffer): void {
    if (destroyed) return
    try {
      let rest = bytes
      if (prefaceDue.length > 0) {
        const length = Math.min(prefaceDue.length, rest.length)
        if (!rest.subarray(0, length).equals(prefaceDue.subarray(0, length))) throw protocolError('no HTTP/2 preface')
        prefaceDue = prefaceDue.subarray(length)
        rest = rest.subarray(length)
      }
      if (rest.length > 0) read(rest)
    } catch (error) {
      fail(error instanceof Error ? error : new Error(String(error)))
    }
  }

  const settings: [number, number][] = [
    [setting.initialWindowSize, http2.streamWindowBytes],
    [setting.maxFrameSize, http2.maxFrameBytes],
    [setting.maxHeaderListSize, options.maxHeaderListBytes],
  ]
  if (server) settings.push([setting.maxConcurrentStreams, options.maxConcurrentStreams ?? 100])
  else settings.unshift([setting.enablePush, 0])
  const greeting = encodeSettings(settings)
  socket.setNoDelay()
  if (!server) writer.raw(preface)
  writer.frame(frameType.settings, 0, 0, greeting)
  if (http2.connectionWindowBytes > initialWindowBytes) {
    sendWindowUpdate(0, http2.connectionWindowBytes - initialWindowBytes)
  }
  pings.answered()

  socket.on('error', (error) => destroy(error))
  socket.on('close', () => {
    destroy()
    closed.resolve()
  })
  socket.on('end', () => {
    if (streams.size > 0) destroy(Object.assign(new Error('the peer closed the connection'), { code: 'ECONNRESET' }))
    else socket.end()
  })
  for (;;) {
    const early: Buffer | null = socket.read()
    if (early === null) break
    receive(early)
  }
  if (
    !readInto(socket, readBuffer, (bytes) => {
      receive(readBuffer.subarray(0, bytes))
      return true
    })
  ) {
    socket.on('data', receive)
  }
  socket.resume()

  return {
    peer,
    closed: closed.promise,
    get activeStreams() {
      return streams.size
    },
    get open() {
      return !destroyed && !leaving && !peerLeaving && socket.writable
    },
    get failure() {
      return failure
    },
    openStream(fields, events) {
      const stream = addStream(nextStreamId, events)
      nextStreamId += 2
      sendHeaders(stream, fields, false)
      return portOf(stream)
    },
    leave() {
      if (leaving || destroyed) return
      leaving = true
      if (server) {
        // Two steps: the client learns it first, and what it opens until it has seen that is still served.
        sendGoaway(mostWindowBytes, errorCode.noError)
        pings.send()
      } else {
        goodbyeSent = true
        sendGoaway(0, errorCode.noError)
      }
      options.onChange()
      endIfDone()
    },
    destroy,
  }
}

const protocolError = (message: string) => new Http2ConnectionError(errorCode.protocolError, message)
const wrongLength = (frame: string) => new Http2ConnectionError(errorCode.frameSizeError, `${frame} of a wrong length`)
