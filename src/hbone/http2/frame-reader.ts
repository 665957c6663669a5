// Cuts a byte stream into HTTP/2 frames. Payload of DATA passes through in the pieces in which it arrives; other frames are whole.
import { errorCode, flag, frameHeaderBytes, frameType, Http2ConnectionError } from './constants.ts'

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly streamId: number
  readonly payload: Buffer
}

export interface FrameReceiver {
  /** A DATA frame begins: `length` octets count against the windows. */
  dataStart(streamId: number, length: number): void
  /** A piece of its payload without padding, valid during the call only. */
  dataPart(streamId: number, part: Buffer): void
  /** The frame is over. `padding`: octets of it that were no data. */
  dataEnd(streamId: number, padding: number, endStream: boolean): void
  frame(frame: Frame): void
}

/** Header blocks bound what a frame other than DATA may hold. */
const mostControlBytes = 128 * 1024

/** A function that takes the bytes as they come. It throws an Http2ConnectionError. */
export function createFrameReader(receiver: FrameReceiver, maxFrameBytes: number): (bytes: Buffer) => void {
  const header = Buffer.alloc(frameHeaderBytes)
  let headerBytes = 0
  let type = 0
  let flags = 0
  let streamId = 0
  /** Of the payload: to come, padding at its end, and whether the octet that tells the padding is still to come. */
  let missing = 0
  let padding = 0
  let padLengthDue = false
  let collected: Buffer | undefined
  let collectedBytes = 0

  function begin(source: Buffer, at: number): void {
    missing = source.readUIntBE(at, 3)
    type = source[at + 3] ?? 0
    flags = source[at + 4] ?? 0
    streamId = source.readUInt32BE(at + 5) & 0x7fff_ffff
    padding = 0
    padLengthDue = false
    if (missing > maxFrameBytes) throw tooLarge()
    if (type === frameType.data) {
      if (streamId === 0) throw new Http2ConnectionError(errorCode.protocolError, 'DATA without a stream')
      padLengthDue = (flags & flag.padded) !== 0
      if (padLengthDue && missing === 0) throw new Http2ConnectionError(errorCode.frameSizeError, 'no pad length')
      receiver.dataStart(streamId, missing)
    } else if (missing > mostControlBytes) {
      throw tooLarge()
    } else {
      collected = undefined
      collectedBytes = 0
    }
  }

  /** Takes what is there of the payload; returns how much. */
  function takePayload(bytes: Buffer, at: number): number {
    const length = Math.min(missing, bytes.length - at)
    if (type !== frameType.data) {
      if (length === missing && collected === undefined) {
        missing = 0
        receiver.frame({ type, flags, streamId, payload: bytes.subarray(at, at + length) })
        return length
      }
      collected ??= Buffer.allocUnsafe(missing)
      bytes.copy(collected, collectedBytes, at, at + length)
      collectedBytes += length
      missing -= length
      if (missing === 0) receiver.frame({ type, flags, streamId, payload: collected })
      return length
    }
    if (padLengthDue) {
      if (length === 0) return 0
      padLengthDue = false
      missing -= 1
      padding = bytes[at] ?? 0
      if (padding > missing) throw new Http2ConnectionError(errorCode.protocolError, 'more padding than frame')
      if (missing === 0) finishData()
      return 1
    }
    const part = Math.min(length, Math.max(0, missing - padding))
    missing -= length
    if (part > 0) receiver.dataPart(streamId, part === bytes.length ? bytes : bytes.subarray(at, at + part))
    if (missing === 0) finishData()
    return length
  }

  function finishData(): void {
    const overhead = (flags & flag.padded) === 0 ? 0 : padding + 1
    receiver.dataEnd(streamId, overhead, (flags & flag.endStream) !== 0)
  }

  return (bytes) => {
    let at = 0
    for (;;) {
      if (headerBytes < frameHeaderBytes) {
        if (headerBytes === 0 && bytes.length - at >= frameHeaderBytes) {
          begin(bytes, at)
          at += frameHeaderBytes
        } else {
          const length = Math.min(frameHeaderBytes - headerBytes, bytes.length - at)
          bytes.copy(header, headerBytes, at, at + length)
          headerBytes += length
          at += length
          if (headerBytes < frameHeaderBytes) return
          begin(header, 0)
        }
        headerBytes = frameHeaderBytes
        if (missing === 0) {
          headerBytes = 0
          takePayload(bytes, at)
          continue
        }
      }
      if (at >= bytes.length) return
      const lengthBefore = missing
      at += takePayload(bytes, at)
      if (missing === 0 && lengthBefore > 0) headerBytes = 0
    }
  }
}

const tooLarge = () => new Http2ConnectionError(errorCode.frameSizeError, 'a frame larger than allowed')
