// For tests: frames as a peer writes them, made with nothing of the writer.
import { encodeFrame } from '../../../test/support/raw-http2.ts'
import { encodeHeaders } from './hpack.ts'

export const frame = (type: number, flags: number, streamId: number, payload?: Uint8Array): Buffer =>
  encodeFrame(type, streamId, flags, payload)

/** 32 bits, as in WINDOW_UPDATE and RST_STREAM. */
export function word(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** The header block that asks for a tunnel. */
export const connect = encodeHeaders([
  [':method', 'CONNECT'],
  [':authority', '10.0.0.1:80'],
])
