// DNS messages as bytes: what a proxy must read and change without understanding every record.
// RFC 1035 section 4.1; RFC 6891 for EDNS.
import { DnsError } from './errors.ts'

export const rcodes = { noError: 0, formatError: 1, serverFailure: 2, nameError: 3, notImplemented: 4 } as const

const flagBits = {
  response: 0x8000,
  authoritative: 0x0400,
  truncated: 0x0200,
  recursionAvailable: 0x0080,
  keptInAnswers: 0x7910,
}
export const headerLength = 12
const optType = 41

export interface RawRecord {
  readonly type: number
  readonly class: number
  readonly ttl: number
  readonly ttlOffset: number
  readonly dataOffset: number
  readonly dataLength: number
  readonly section: 'answer' | 'authority' | 'additional'
}

/** The parts of a message a proxy looks at. */
export interface RawMessage {
  readonly bytes: Buffer
  readonly id: number
  readonly isResponse: boolean
  readonly opcode: number
  readonly rcode: number
  readonly isTruncated: boolean
  readonly questionCount: number
  /** Of the first question: its end, its name in lower case as bytes, its type. */
  readonly question?: { readonly end: number; readonly key: string; readonly type: number }
}

export interface Edns {
  readonly payloadSize: number
  readonly version: number
  readonly dnssecOk: boolean
}

/** Reads the header and the first question. Throws a DnsError when the bytes are no message. */
export function readMessage(input: Uint8Array): RawMessage {
  const bytes = Buffer.from(input.buffer, input.byteOffset, input.byteLength)
  if (bytes.length < headerLength) throw new DnsError('MALFORMED_MESSAGE', 'a DNS message is at least 12 bytes')
  const flags = bytes.readUInt16BE(2)
  const questionCount = bytes.readUInt16BE(4)
  const message = {
    bytes,
    id: bytes.readUInt16BE(0),
    isResponse: (flags & flagBits.response) !== 0,
    opcode: (flags >> 11) & 0xf,
    rcode: flags & 0xf,
    isTruncated: (flags & flagBits.truncated) !== 0,
    questionCount,
  }
  if (questionCount === 0) return message
  const nameEnd = skipName(bytes, headerLength)
  const end = nameEnd + 4
  if (end > bytes.length) throw new DnsError('MALFORMED_MESSAGE', 'the question is cut off')
  const key = bytes.toString('latin1', headerLength, end).replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  return { ...message, question: { end, key, type: bytes.readUInt16BE(nameEnd) } }
}

/** All records after the questions. Throws a DnsError when the message is cut off or malformed. */
export function readRecords(message: RawMessage): readonly RawRecord[] {
  const { bytes } = message
  let offset = headerLength
  for (let index = 0; index < message.questionCount; index += 1) offset = skipName(bytes, offset) + 4
  const records: RawRecord[] = []
  const sections = ['answer', 'authority', 'additional'] as const
  for (const [index, section] of sections.entries()) {
    for (let left = bytes.readUInt16BE(6 + index * 2); left > 0; left -= 1) {
      const start = skipName(bytes, offset)
      if (start + 10 > bytes.length) throw new DnsError('MALFORMED_MESSAGE', 'a record is cut off')
      const dataLength = bytes.readUInt16BE(start + 8)
      const dataOffset = start + 10
      offset = dataOffset + dataLength
      if (offset > bytes.length) throw new DnsError('MALFORMED_MESSAGE', 'the data of a record is cut off')
      const [type, recordClass, ttl] = [
        bytes.readUInt16BE(start),
        bytes.readUInt16BE(start + 2),
        bytes.readUInt32BE(start + 4),
      ]
      records.push({ type, class: recordClass, ttl, ttlOffset: start + 4, dataOffset, dataLength, section })
    }
  }
  return records
}

/** The EDNS options of a message, if it has any. */
export function readEdns(records: readonly RawRecord[]): Edns | undefined {
  const opt = records.find((record) => record.type === optType && record.section === 'additional')
  if (opt === undefined) return undefined
  return { payloadSize: opt.class, version: (opt.ttl >>> 16) & 0xff, dnssecOk: (opt.ttl & 0x8000) !== 0 }
}

export const isOpt = (record: RawRecord): boolean => record.type === optType

/** Header and question of a query as an answer without records. */
export function emptyAnswer(query: RawMessage, rcode: number, edns?: Edns): Buffer {
  const questions = query.question === undefined ? 0 : 1
  const end = query.question?.end ?? headerLength
  const answer = Buffer.concat([query.bytes.subarray(0, end), edns === undefined ? Buffer.alloc(0) : encodeOpt(edns)])
  const kept = answer.readUInt16BE(2) & flagBits.keptInAnswers
  answer.writeUInt16BE(flagBits.response | flagBits.recursionAvailable | kept | rcode, 2)
  for (const [offset, count] of [
    [4, questions],
    [6, 0],
    [8, 0],
    [10, edns === undefined ? 0 : 1],
  ] as const) {
    answer.writeUInt16BE(count, offset)
  }
  return answer
}

/** A copy of an upstream's answer as our own to this query: its id, its spelling of the name, recursion available, not authoritative. */
export function relayAnswer(query: RawMessage, answer: RawMessage): Buffer {
  const copy = Buffer.from(answer.bytes)
  copy.writeUInt16BE(query.id, 0)
  const flags = (copy.readUInt16BE(2) | flagBits.recursionAvailable) & ~flagBits.authoritative
  copy.writeUInt16BE(flags, 2)
  if (query.question !== undefined && answer.question?.key === query.question.key) {
    query.bytes.copy(copy, headerLength, headerLength, query.question.end)
  }
  return copy
}

/** The message when it fits, else header and question with the truncation flag. */
export function truncate(query: RawMessage, answer: Buffer, limit: number): Buffer {
  if (answer.length <= limit) return answer
  const short = emptyAnswer(query, answer.readUInt16BE(2) & 0xf)
  short.writeUInt16BE(short.readUInt16BE(2) | flagBits.truncated, 2)
  return short
}

export function encodeOpt({ payloadSize, version, dnssecOk }: Edns): Buffer {
  const opt = Buffer.alloc(11)
  opt.writeUInt16BE(optType, 1)
  opt.writeUInt16BE(payloadSize, 3)
  opt.writeUInt32BE((version << 16) | (dnssecOk ? 0x8000 : 0), 5)
  return opt
}

function skipName(bytes: Buffer, start: number): number {
  let offset = start
  while (offset < bytes.length && offset - start <= 255) {
    const length = bytes.readUInt8(offset)
    if (length === 0) return offset + 1
    if ((length & 0xc0) === 0xc0) return offset + 2
    if ((length & 0xc0) !== 0) break
    offset += length + 1
  }
  throw new DnsError('MALFORMED_MESSAGE', 'a name is malformed or cut off')
}
