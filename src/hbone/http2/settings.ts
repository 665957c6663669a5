// SETTINGS as a payload and back, with the limits of the protocol.
import {
  errorCode,
  Http2ConnectionError,
  leastMaxFrameBytes,
  mostMaxFrameBytes,
  mostWindowBytes,
  setting,
} from './constants.ts'

export interface PeerSettings {
  maxConcurrentStreams: number
  initialWindowBytes: number
  maxFrameBytes: number
}

export function encodeSettings(values: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(values.length * 6)
  for (const [index, [id, value]] of values.entries()) {
    payload.writeUInt16BE(id, index * 6)
    payload.writeUInt32BE(value, index * 6 + 2)
  }
  return payload
}

/** Throws an Http2ConnectionError for values outside the protocol. Settings that do not matter to us are passed over. */
export function applySettings(payload: Buffer, peer: PeerSettings): void {
  if (payload.length % 6 !== 0) throw new Http2ConnectionError(errorCode.frameSizeError, 'SETTINGS of a wrong length')
  for (let at = 0; at < payload.length; at += 6) {
    const value = payload.readUInt32BE(at + 2)
    switch (payload.readUInt16BE(at)) {
      case setting.enablePush:
        if (value > 1) throw new Http2ConnectionError(errorCode.protocolError, `ENABLE_PUSH of ${value}`)
        break
      case setting.maxConcurrentStreams:
        peer.maxConcurrentStreams = value
        break
      case setting.initialWindowSize:
        if (value > mostWindowBytes) throw new Http2ConnectionError(errorCode.flowControlError, 'a window too large')
        peer.initialWindowBytes = value
        break
      case setting.maxFrameSize:
        if (value < leastMaxFrameBytes || value > mostMaxFrameBytes) {
          throw new Http2ConnectionError(errorCode.protocolError, `MAX_FRAME_SIZE of ${value}`)
        }
        peer.maxFrameBytes = value
        break
    }
  }
}
