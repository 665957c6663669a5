// The Huffman code of HPACK (RFC 7541, appendix B). It is canonical: the lengths alone give the codes.
import { errorCode, Http2ConnectionError } from './constants.ts'

/** Code lengths in bits, run by run: how many symbols in a row, of which length. The last symbol ends the string. */
const runs: readonly (readonly [symbols: number, bits: number])[] = [
  [1, 13],
  [1, 23],
  [7, 28],
  [1, 24],
  [1, 30],
  [2, 28],
  [1, 30],
  [8, 28],
  [1, 30],
  [9, 28],
  [1, 6],
  [2, 10],
  [1, 12],
  [1, 13],
  [1, 6],
  [1, 8],
  [1, 11],
  [2, 10],
  [1, 8],
  [1, 11],
  [1, 8],
  [3, 6],
  [3, 5],
  [7, 6],
  [1, 7],
  [1, 8],
  [1, 15],
  [1, 6],
  [1, 12],
  [1, 10],
  [1, 13],
  [1, 6],
  [22, 7],
  [1, 8],
  [1, 7],
  [1, 8],
  [1, 13],
  [1, 19],
  [1, 13],
  [1, 14],
  [1, 6],
  [1, 15],
  [1, 5],
  [1, 6],
  [1, 5],
  [1, 6],
  [1, 5],
  [3, 6],
  [1, 5],
  [2, 7],
  [3, 6],
  [1, 5],
  [1, 6],
  [1, 7],
  [1, 6],
  [2, 5],
  [1, 6],
  [5, 7],
  [1, 15],
  [1, 11],
  [1, 14],
  [1, 13],
  [1, 28],
  [1, 20],
  [1, 22],
  [2, 20],
  [3, 22],
  [1, 23],
  [1, 22],
  [5, 23],
  [1, 24],
  [1, 23],
  [2, 24],
  [1, 22],
  [1, 23],
  [1, 24],
  [4, 23],
  [1, 21],
  [1, 22],
  [1, 23],
  [1, 22],
  [2, 23],
  [1, 24],
  [1, 22],
  [1, 21],
  [1, 20],
  [2, 22],
  [2, 23],
  [1, 21],
  [1, 23],
  [2, 22],
  [1, 24],
  [1, 21],
  [1, 22],
  [2, 23],
  [2, 21],
  [1, 22],
  [1, 21],
  [1, 23],
  [1, 22],
  [2, 23],
  [1, 20],
  [3, 22],
  [1, 23],
  [2, 22],
  [1, 23],
  [2, 26],
  [1, 20],
  [1, 19],
  [1, 22],
  [1, 23],
  [1, 22],
  [1, 25],
  [3, 26],
  [2, 27],
  [1, 26],
  [1, 24],
  [1, 25],
  [1, 19],
  [1, 21],
  [1, 26],
  [2, 27],
  [1, 26],
  [1, 27],
  [1, 24],
  [2, 21],
  [2, 26],
  [1, 28],
  [3, 27],
  [1, 20],
  [1, 24],
  [1, 20],
  [1, 21],
  [1, 22],
  [2, 21],
  [1, 23],
  [2, 22],
  [2, 25],
  [2, 24],
  [1, 26],
  [1, 23],
  [1, 26],
  [1, 27],
  [2, 26],
  [5, 27],
  [1, 28],
  [5, 27],
  [1, 26],
  [1, 30],
]

const endOfString = 256
const longestBits = 30

interface Codes {
  /** The first code of each length, aligned to the length itself. */
  readonly firstCode: Int32Array
  /** How many codes of each length there are, and where their symbols begin. */
  readonly count: Int32Array
  readonly offset: Int32Array
  readonly symbols: Int32Array
}

function canonicalCodes(): Codes {
  const lengths = runs.flatMap(([symbols, bits]) => Array.from({ length: symbols }, () => bits))
  const symbols = Int32Array.from(lengths.keys()).sort((a, b) => (lengths[a] ?? 0) - (lengths[b] ?? 0) || a - b)
  const count = new Int32Array(longestBits + 1)
  for (const bits of lengths) count[bits] = (count[bits] ?? 0) + 1
  const firstCode = new Int32Array(longestBits + 1)
  const offset = new Int32Array(longestBits + 1)
  let code = 0
  let index = 0
  for (let bits = 1; bits <= longestBits; bits += 1) {
    code <<= 1
    firstCode[bits] = code
    offset[bits] = index
    code += count[bits] ?? 0
    index += count[bits] ?? 0
  }
  return { firstCode, count, offset, symbols }
}

const codes = canonicalCodes()

/** The octets that `coded` stands for. Throws an Http2ConnectionError where the padding is not as it must be. */
export function decodeHuffman(coded: Uint8Array): Buffer {
  const decoded = Buffer.allocUnsafe(Math.ceil((coded.length * 8) / 5))
  let length = 0
  let code = 0
  let bits = 0
  for (const octet of coded) {
    for (let shift = 7; shift >= 0; shift -= 1) {
      code = (code << 1) | ((octet >> shift) & 1)
      bits += 1
      const index = code - (codes.firstCode[bits] ?? 0)
      if (index >= 0 && index < (codes.count[bits] ?? 0)) {
        const symbol = codes.symbols[(codes.offset[bits] ?? 0) + index] ?? endOfString
        if (symbol === endOfString) throw malformed()
        decoded[length] = symbol
        length += 1
        code = 0
        bits = 0
      } else if (bits >= longestBits) {
        throw malformed()
      }
    }
  }
  // What is left is the beginning of the end-of-string code: fewer than eight bits, all ones.
  if (bits > 7 || code !== (1 << bits) - 1) throw malformed()
  return decoded.subarray(0, length)
}

const malformed = () => new Http2ConnectionError(errorCode.compressionError, 'malformed Huffman code in a header')
