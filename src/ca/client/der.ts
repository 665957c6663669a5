// The little of ASN.1 DER that a certificate's holder needs: writing a request, reading a revocation list.

export const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const

export class DerError extends Error {
  readonly code = 'INVALID_DER'
}

/** One element: tag, length, and the contents one after the other. */
export function encode(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(contents)
  return Buffer.concat([Buffer.from([tag]), encodeLength(body.length), body])
}

export function encodeOid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const bytes = [first * 40 + second, ...rest].flatMap((arc) => {
    const septets = [arc & 0x7f]
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128))
      septets.unshift((left & 0x7f) | 0x80)
    return septets
  })
  return encode(tags.oid, Buffer.from(bytes))
}

function encodeLength(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  const bytes: number[] = []
  for (let left = length; left > 0; left = Math.floor(left / 256)) bytes.unshift(left & 0xff)
  return Buffer.from([0x80 | bytes.length, ...bytes])
}

export interface DerElement {
  readonly tag: number
  readonly content: Buffer
  /** The element with its tag and length. */
  readonly bytes: Buffer
}

/** Reads the element at the start of the bytes; throws a DerError when they are cut short or not DER. */
export function decode(bytes: Buffer): DerElement {
  const [tag, first] = bytes
  if (tag === undefined || first === undefined || (tag & 0x1f) === 0x1f) throw new DerError('not a DER element')
  let length = first
  let start = 2
  if (first >= 0x80) {
    const size = first & 0x7f
    if (size === 0 || size > 4 || bytes.length < 2 + size) throw new DerError('invalid DER length')
    length = bytes.readUIntBE(2, size)
    start += size
  }
  if (bytes.length < start + length) throw new DerError('DER element cut short')
  return { tag, content: bytes.subarray(start, start + length), bytes: bytes.subarray(0, start + length) }
}

/** The elements inside a constructed element. */
export function children(content: Buffer): DerElement[] {
  const elements: DerElement[] = []
  for (let rest = content; rest.length > 0; ) {
    const element = decode(rest)
    elements.push(element)
    rest = rest.subarray(element.bytes.length)
  }
  return elements
}
