// HTTP/2 frames and header blocks written down from RFC 9113 and RFC 7541, so that tests do not check a library against itself.
import { once } from 'node:events'
import type { Duplex } from 'node:stream'

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const flags = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

export function encodeFrame(
  type: number,
  stream: number,
  frameFlags = 0,
  payload: Uint8Array = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(frameFlags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** Literals without indexing and without Huffman coding. */
export function encodeHeaders(headers: readonly (readonly [name: string, value: string])[]): Buffer {
  const text = (value: string): Buffer => {
    const bytes = Buffer.from(value)
    if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes])
    const rest: number[] = []
    let left = bytes.length - 127
    for (; left >= 128; left = Math.floor(left / 128)) rest.push((left % 128) + 128)
    return Buffer.concat([Buffer.from([127, ...rest, left]), bytes])
  }
  return Buffer.concat(headers.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]))
}

/** The `:status` that a response's header block starts with. */
export function statusOf(block: Buffer): number {
  const [first = 0, second = 0] = block
  // A size update of the dynamic table may come first.
  if ((first & 0xe0) === 0x20) return statusOf(block.subarray(1))
  const indexed: Readonly<Record<number, number>> = {
    136: 200,
    137: 204,
    138: 206,
    139: 304,
    140: 400,
    141: 404,
    142: 500,
  }
  const known = indexed[first]
  if (known !== undefined) return known
  // A literal with an indexed name of :status (8 to 14), in any of the three forms.
  const nameIndex = (first & 0x40) === 0x40 ? first & 0x3f : first & 0x0f
  if (nameIndex < 8 || nameIndex > 14)
    throw new Error(`the block does not start with a status: ${block.toString('hex')}`)
  const value = block.subarray(2, 2 + (second & 0x7f))
  return Number((second & 0x80) === 0 ? value.toString() : huffmanDigits(value))
}

/** Digits of the Huffman code: 0 to 2 take five bits, 3 to 9 six. */
function huffmanDigits(bytes: Buffer): string {
  let bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  let digits = ''
  while (bits.length >= 5 && !/^1+$/.test(bits)) {
    const five = Number.parseInt(bits.slice(0, 5), 2)
    const length = five <= 2 ? 5 : 6
    const code = Number.parseInt(bits.slice(0, length), 2)
    digits += length === 5 ? code : code - 0x19 + 3
    bits = bits.slice(length)
  }
  return digits
}

export interface RawPeer {
  readonly stream: Duplex
  send(...frames: readonly Uint8Array[]): void
  /** The next frame that matches, others are kept. Rejects when the stream ends before. */
  next(matches: (frame: Frame) => boolean, what: string): Promise<Frame>
  /** Frames that came and were not taken. */
  readonly pending: readonly Frame[]
  readonly ended: boolean
}

/** Reads frames from a connection; what is to be sent and answered is the test's own affair. */
export function rawPeer(stream: Duplex, options: { readonly expectPreface?: boolean } = {}): RawPeer {
  const frames: Frame[] = []
  let bytes = Buffer.alloc(0)
  let awaitsPreface = options.expectPreface === true
  let ended = false
  const wake = new EventTarget()
  const tell = () => wake.dispatchEvent(new Event('change'))
  stream.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    if (awaitsPreface) {
      if (bytes.length < preface.length) return
      if (!bytes.subarray(0, preface.length).equals(preface)) throw new Error('no HTTP/2 preface')
      bytes = bytes.subarray(preface.length)
      awaitsPreface = false
    }
    while (bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3)) {
      const end = 9 + bytes.readUIntBE(0, 3)
      frames.push({
        type: bytes.readUInt8(3),
        flags: bytes.readUInt8(4),
        stream: bytes.readUInt32BE(5) & 0x7fffffff,
        payload: Buffer.from(bytes.subarray(9, end)),
      })
      bytes = bytes.subarray(end)
    }
    tell()
  })
  stream.on('error', () => undefined)
  for (const event of ['end', 'close']) {
    stream.on(event, () => {
      ended = true
      tell()
    })
  }
  return {
    stream,
    send: (...parts) => void stream.write(Buffer.concat(parts)),
    pending: frames,
    get ended() {
      return ended
    },
    async next(matches, what) {
      for (;;) {
        const index = frames.findIndex(matches)
        const [found] = index < 0 ? [] : frames.splice(index, 1)
        if (found !== undefined) return found
        if (ended) throw new Error(`the connection ended before ${what}`)
        await once(wake, 'change')
      }
    },
  }
}
