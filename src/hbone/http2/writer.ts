// What a connection has to send: frames are gathered while the socket is busy, and go out in as few writes as possible.
import type { Socket } from 'node:net'
import { acquireBatch, batchBytes, releaseBatch } from '../buffers.ts'
import { frameHeaderBytes, frameType } from './constants.ts'

/** Above this, those who send are asked to wait; below half of it they are called. */
const mostWaitingBytes = 2 * batchBytes

export interface FrameWriter {
  /** Nothing is waiting and nothing on its way: bytes could be written without gathering them. */
  readonly idle: boolean
  /** So much is waiting that no more should be brought. */
  readonly congested: boolean
  readonly waitingBytes: number
  /** So much of it is frames other than DATA, which no window holds back. */
  readonly waitingControlBytes: number
  /** Bytes that are no frame. They go out with the next frame. */
  raw(bytes: Buffer): void
  /** A frame other than DATA; it goes out at the end of this turn of the event loop, or with the next bytes. */
  frame(type: number, flags: number, streamId: number, payload: Buffer): void
  /** A DATA frame, copied. Goes out at once when the socket is free. */
  data(streamId: number, flags: number, payload: Buffer): void
  /** A DATA frame without copying, only while idle: the payload lies in `buffer` behind room for the frame's header. */
  direct(streamId: number, buffer: Buffer, payloadBytes: number): void
  flush(): void
  /** Ends the socket after what is waiting; nothing more is taken. */
  end(): void
  /** Nothing more is sent; what was gathered is given up. */
  close(): void
}

interface Batch {
  readonly buffer: Buffer
  readonly length: number
  /** So much of it was gathered as frames other than DATA. */
  readonly controlLength: number
}

function writeFrameHeader(to: Buffer, at: number, length: number, type: number, flags: number, id: number): void {
  to[at] = length >>> 16
  to[at + 1] = (length >>> 8) & 0xff
  to[at + 2] = length & 0xff
  to[at + 3] = type
  to[at + 4] = flags
  to.writeUInt32BE(id, at + 5)
}

/** `onRelief` is called when the writer is no longer congested. */
export function createFrameWriter(socket: Socket, onRelief: () => void): FrameWriter {
  const full: Batch[] = []
  let current: Buffer | undefined
  let filled = 0
  let controlFilled = 0
  let waitingBytes = 0
  let waitingControlBytes = 0
  let writing = false
  let flushing: NodeJS.Immediate | undefined
  let relieving = false
  let ending = false
  let closed = false

  function makeRoom(): Buffer {
    if (current !== undefined && filled < batchBytes) return current
    const filledUp = takeCurrent()
    if (filledUp !== undefined) full.push(filledUp)
    current = acquireBatch()
    return current
  }

  function append(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      const buffer = makeRoom()
      const copied = bytes.copy(buffer, filled, at)
      filled += copied
      at += copied
    }
    waitingBytes += bytes.length
    if (waitingBytes >= mostWaitingBytes) relieving = true
  }

  const header = Buffer.alloc(frameHeaderBytes)
  function appendHeader(length: number, type: number, flags: number, streamId: number): void {
    writeFrameHeader(header, 0, length, type, flags, streamId)
    append(header)
  }

  function flush(): void {
    clearImmediate(flushing)
    flushing = undefined
    if (writing || closed) return
    const next = full.shift() ?? takeCurrent()
    if (next === undefined) {
      if (ending) socket.end()
      return
    }
    writing = true
    socket.write(next.buffer.subarray(0, next.length), () => {
      releaseBatch(next.buffer)
      written(next.length, next.controlLength)
    })
  }

  function takeCurrent(): Batch | undefined {
    if (current === undefined) return undefined
    const taken = { buffer: current, length: filled, controlLength: controlFilled }
    current = undefined
    filled = 0
    controlFilled = 0
    return taken
  }

  function written(bytes: number, controlBytes: number): void {
    writing = false
    waitingBytes -= bytes
    waitingControlBytes -= controlBytes
    if (closed) return
    flush()
    if (relieving && waitingBytes < mostWaitingBytes / 2) {
      relieving = false
      onRelief()
    }
  }

  const directWritten = () => written(0, 0)

  return {
    get idle() {
      return !writing && current === undefined && !closed && !ending && socket.writableLength === 0
    },
    get congested() {
      return relieving
    },
    get waitingBytes() {
      return waitingBytes
    },
    get waitingControlBytes() {
      return waitingControlBytes
    },
    raw: append,
    frame(type, flags, streamId, payload) {
      if (closed || ending) return
      appendHeader(payload.length, type, flags, streamId)
      append(payload)
      const bytes = frameHeaderBytes + payload.length
      controlFilled += bytes
      waitingControlBytes += bytes
      if (!writing) flushing ??= setImmediate(flush)
    },
    data(streamId, flags, payload) {
      if (closed || ending) return
      appendHeader(payload.length, frameType.data, flags, streamId)
      append(payload)
      if (!writing) flush()
    },
    direct(streamId, buffer, payloadBytes) {
      writeFrameHeader(buffer, 0, payloadBytes, frameType.data, 0, streamId)
      writing = true
      // TLS has encrypted it when this returns, so that the buffer is free again.
      socket.write(buffer.subarray(0, frameHeaderBytes + payloadBytes), directWritten)
    },
    flush,
    end() {
      ending = true
      flush()
    },
    close() {
      closed = true
      clearImmediate(flushing)
      full.length = 0
      current = undefined
    },
  }
}
