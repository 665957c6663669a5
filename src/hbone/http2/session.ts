// One HTTP/2 connection over an established TLS socket, for CONNECT streams: settings, flow control, pings, goodbyes (RFC 9113).
import type { Socket } from 'node:net'
import { readInto } from '../read-into.ts'
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
import { encodeHeaders, type HeaderField } from './hpack.ts'
import { createPings } from './pings.ts'
import { createReceiving, type ReceivingOptions } from './receiving.ts'
import { createSender } from './sender.ts'
import { encodeSettings, type PeerSettings } from './settings.ts'
import { createStream, type SessionStream, type Stream, type StreamEvents } from './stream.ts'
import { createFrameWriter } from './writer.ts'

export interface SessionOptions extends ReceivingOptions {
  readonly onPingTimeout: () => void
}

export interface Session {
  readonly peer: Readonly<PeerSettings>
  readonly activeStreams: number
  /** New streams can be opened: neither side is leaving. */
  readonly open: boolean
  /** What streams hold leaves little of the connection's window in one of the directions. */
  readonly heldUp: boolean
  /** Resolves when the socket is closed. */
  readonly closed: Promise<void>
  /** Why the session broke, if it did. */
  readonly failure: Error | undefined
  openStream(fields: readonly HeaderField[], events: StreamEvents): SessionStream
  /** No new streams; those in progress go on, and then the connection ends. */
  leave(): void
  /**
   * Resets every stream, says goodbye, and closes once the peer has that. A peer that takes nothing is waited for a second; what it still
   * sends is not looked at.
   */
  cut(): void
  /** Closes at once, without a word. */
  destroy(error?: Error): void
}

const readBuffer = Buffer.allocUnsafeSlow(64 * 1024)
const lingerMs = 5_000
const farewellMs = 1_000

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
  const credit = createCredit(http2, sendWindowUpdate)
  let nextStreamId = 1
  let leaving = false
  let goodbyeSent = false
  let peerLeaving = false
  let failure: Error | undefined
  let cutShort = false
  let destroyed = false
  const pings = createPings(http2, {
    send: (payload) => writer.frame(frameType.ping, 0, 0, payload),
    onDead() {
      options.onPingTimeout()
      fail(new Http2ConnectionError(errorCode.noError, 'no answer to a ping'))
    },
  })
  let linger: NodeJS.Timeout | undefined
  const closed = Promise.withResolvers<void>()
  const receiving = createReceiving(options, {
    peer,
    streams,
    writer,
    sender,
    credit,
    nextStreamId: () => nextStreamId,
    goodbyeSent: () => goodbyeSent,
    addStream,
    portOf,
    sendReset,
    close,
    closeIfDone,
    takePong,
    peerLeaves() {
      peerLeaving = true
    },
    endIfDone,
  })

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
    if (!destroyed && !cutShort) credit.give(stream.unconsumed)
    stream.events.closed(code, error)
    const { endDue } = stream
    stream.endDue = undefined
    endDue?.()
    options.onChange()
    endIfDone()
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
    sendGoaway(receiving.lastPeerStreamId, errorCode.noError)
    endIfDone()
  }

  function endIfDone(): void {
    if (destroyed || streams.size > 0 || linger !== undefined) return
    if (!((leaving && goodbyeSent) || (peerLeaving && !server))) return
    if (!goodbyeSent) {
      goodbyeSent = true
      sendGoaway(receiving.lastPeerStreamId, errorCode.noError)
    }
    // Cutting the socket while the peer still sends would make it lose what it has not read yet.
    linger = setTimeout(() => destroy(), lingerMs)
    writer.end()
  }

  /** Tells the peer what is wrong, and cuts the connection. */
  function fail(error: Error): void {
    if (destroyed) return
    const code = error instanceof Http2ConnectionError ? error.code : errorCode.internalError
    sendGoaway(receiving.lastPeerStreamId, code)
    writer.flush()
    destroy(error)
  }

  function cut(): void {
    if (destroyed || cutShort) return
    cutShort = true
    leaving = true
    const ending = linger !== undefined
    clearTimeout(linger)
    // Until the peer has closed, too: cutting the socket while it still sends would make it lose what it is told here.
    linger = setTimeout(() => destroy(), farewellMs)
    pings.close()
    for (const stream of [...streams.values()]) {
      sendReset(stream.id, errorCode.cancel)
      close(stream, errorCode.cancel)
    }
    if (!ending) {
      if (!goodbyeSent) sendGoaway(receiving.lastPeerStreamId, errorCode.noError)
      goodbyeSent = true
      writer.end()
    }
    options.onChange()
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
    if (destroyed || cutShort) return
    try {
      receiving.take(bytes)
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
    get heldUp() {
      return sender.exhausted || credit.nearlyAllHeld
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
    cut,
    destroy,
  }
}
