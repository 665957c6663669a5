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

/** A header block that needs no memory of earlier ones: whole fields of the static table by index, the rest as literals. */
export function encodeHeaders(fields: readonly HeaderField[]): Buffer {
  const parts = fields.flatMap(([name, value]) => {
    const whole = staticTable.findIndex((known) => known[0] === name && known[1] === value)
    if (whole >= 0) return [integer(whole + 1, 7, 0x80)]
    const known = staticTable.findIndex((field) => field[0] === name)
    if (known >= 0) return [integer(known + 1, 4, 0), ...string(value)]
    return [integer(0, 4, 0), ...string(name), ...string(value)]
  })
  return Buffer.concat(parts)
}

function string(text: string): Buffer[] {
  const octets = Buffer.from(text, 'latin1')
  return [integer(octets.length, 7, 0), octets]
}

function integer(value: number, prefixBits: number, pattern: number): Buffer {
  const mask = (1 << prefixBits) - 1
  if (value < mask) return Buffer.of(pattern | value)
  const octets = [pattern | mask]
  let rest = value - mask
  while (rest >= 0x80) {
    octets.push((rest & 0x7f) | 0x80)
    rest = Math.floor(rest / 0x80)
  }
  octets.push(rest)
  return Buffer.from(octets)
}
