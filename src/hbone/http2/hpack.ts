// Header compression (RFC 7541): a complete decoder, and an encoder that leaves the peer's table alone.
import { errorCode, Http2ConnectionError } from './constants.ts'
import { decodeHuffman } from './huffman.ts'

export type HeaderField = readonly [name: string, value: string]

/** RFC 7541, appendix A, from index 1. */
const staticTable: readonly HeaderField[] = [
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  ...['200', '204', '206', '304', '400', '404', '500'].map((status): HeaderField => [':status', status]),
  ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'],
  ...[
    'accept-language',
    'accept-ranges',
    'accept',
    'access-control-allow-origin',
    'age',
    'allow',
    'authorization',
    'cache-control',
    'content-disposition',
    'content-encoding',
    'content-language',
    'content-length',
    'content-location',
    'content-range',
    'content-type',
    'cookie',
    'date',
    'etag',
    'expect',
    'expires',
    'from',
    'host',
    'if-match',
    'if-modified-since',
    'if-none-match',
    'if-range',
    'if-unmodified-since',
    'last-modified',
    'link',
    'location',
    'max-forwards',
    'proxy-authenticate',
    'proxy-authorization',
    'range',
    'referer',
    'refresh',
    'retry-after',
    'server',
    'set-cookie',
    'strict-transport-security',
    'transfer-encoding',
    'user-agent',
    'vary',
    'via',
    'www-authenticate',
  ].map((name): HeaderField => [name, '']),
]

/** What one entry counts beyond its octets, in a table and in a header list alike. */
const entryOverhead = 32
const maxTableBytes = 4096

export interface HpackDecoder {
  /**
   * The fields of one header block, in order. Throws an Http2ConnectionError for a malformed block. Fields beyond
   * `maxListBytes` are decoded, since the table must follow, and left out; the result then says `tooLarge`.
   */
  decode(block: Buffer): { readonly fields: readonly HeaderField[]; readonly tooLarge: boolean }
}

export function createHpackDecoder(maxListBytes: number): HpackDecoder {
  /** Newest first. */
  const table: HeaderField[] = []
  let tableBytes = 0
  let tableLimit = maxTableBytes

  function evict(): void {
    while (tableBytes > tableLimit) {
      const oldest = table.pop()
      if (oldest === undefined) return
      tableBytes -= sizeOf(oldest)
    }
  }

  function remember(field: HeaderField): void {
    table.unshift(field)
    tableBytes += sizeOf(field)
    evict()
  }

  function fieldAt(index: number): HeaderField {
    const field = index <= staticTable.length ? staticTable[index - 1] : table[index - staticTable.length - 1]
    if (field === undefined) throw malformed('an index beyond the tables')
    return field
  }

  return {
    decode(block) {
      const fields: HeaderField[] = []
      let listBytes = 0
      const input = { block, at: 0 }
      const add = (field: HeaderField) => {
        listBytes += sizeOf(field)
        if (listBytes <= maxListBytes) fields.push(field)
      }
      const literal = (index: number): HeaderField => {
        const name = index === 0 ? readString(input) : fieldAt(index)[0]
        return [name, readString(input)]
      }
      let updatesAllowed = true
      while (input.at < block.length) {
        const first = block[input.at] ?? 0
        if ((first & 0xe0) === 0x20) {
          if (!updatesAllowed) throw malformed('a table size update after the first field')
          tableLimit = readInteger(input, 5)
          if (tableLimit > maxTableBytes) throw malformed('a table size beyond the limit')
          evict()
          continue
        }
        updatesAllowed = false
        if ((first & 0x80) !== 0) {
          add(fieldAt(readInteger(input, 7)))
        } else if ((first & 0x40) !== 0) {
          const field = literal(readInteger(input, 6))
          remember(field)
          add(field)
        } else {
          add(literal(readInteger(input, 4)))
        }
      }
      return { fields, tooLarge: listBytes > maxListBytes }
    },
  }
}

interface Input {
  readonly block: Buffer
  at: number
}

const mostIntegerBytes = 5

function readInteger(input: Input, prefixBits: number): number {
  const mask = (1 << prefixBits) - 1
  let value = octet(input) & mask
  if (value < mask) return value
  for (let count = 0; count < mostIntegerBytes; count += 1) {
    const next = octet(input)
    value += (next & 0x7f) * 2 ** (7 * count)
    if ((next & 0x80) === 0) return value
  }
  throw malformed('an integer too long')
}

function readString(input: Input): string {
  const coded = ((input.block[input.at] ?? 0) & 0x80) !== 0
  const length = readInteger(input, 7)
  const end = input.at + length
  if (end > input.block.length) throw malformed('a string beyond the block')
  const octets = input.block.subarray(input.at, end)
  input.at = end
  return (coded ? decodeHuffman(octets) : octets).toString('latin1')
}

function octet(input: Input): number {
  const value = input.block[input.at]
  if (value === undefined) throw malformed('an end within a field')
  input.at += 1
  return value
}

const sizeOf = ([name, value]: HeaderField) => name.length + value.length + entryOverhead

const malformed = (what: string) => new Http2ConnectionError(errorCode.compressionError, `malformed headers: ${what}`)

const nameIndices = new Map<string, number>()
const fieldIndices = new Map<string, number>()
for (const [index, [name, value]] of staticTable.entries()) {
  if (!nameIndices.has(name)) nameIndices.set(name, index + 1)
  fieldIndices.set(`${name}\0${value}`, index + 1)
}

/** A header block that needs no memory of earlier ones: whole fields of the static table by index, the rest as literals. */
export function encodeHeaders(fields: readonly HeaderField[]): Buffer {
  let size = 0
  for (const [name, value] of fields) size += name.length + value.length + 3 * mostIntegerOctets
  const block = Buffer.allocUnsafe(size)
  let at = 0
  for (const [name, value] of fields) {
    const whole = fieldIndices.get(`${name}\0${value}`)
    if (whole !== undefined) {
      at = writeInteger(block, at, whole, 7, 0x80)
      continue
    }
    const known = nameIndices.get(name)
    at = writeInteger(block, at, known ?? 0, 4, 0)
    if (known === undefined) at = writeString(block, at, name)
    at = writeString(block, at, value)
  }
  return block.subarray(0, at)
}

function writeString(to: Buffer, at: number, text: string): number {
  const begin = writeInteger(to, at, text.length, 7, 0)
  return begin + to.write(text, begin, 'latin1')
}

/** What a prefix and as many octets as a length can need take at most. */
const mostIntegerOctets = 6

function writeInteger(to: Buffer, at: number, value: number, prefixBits: number, pattern: number): number {
  const mask = (1 << prefixBits) - 1
  if (value < mask) {
    to[at] = pattern | value
    return at + 1
  }
  to[at] = pattern | mask
  let rest = value - mask
  let next = at + 1
  while (rest >= 0x80) {
    to[next] = (rest & 0x7f) | 0x80
    rest = Math.floor(rest / 0x80)
    next += 1
  }
  to[next] = rest
  return next + 1
}
