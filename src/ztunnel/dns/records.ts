// Address and alias records as bytes (RFC 1035 section 3.2, RFC 3596).
import { ipToBytes } from '../state/address.ts'
import type { DnsRecord } from './answer.ts'

const types = { A: 1, CNAME: 5, AAAA: 28 } as const
const internetClass = 1

export function encodeRecord(record: DnsRecord, ttlSeconds: number): Buffer {
  const data = record.type === 'CNAME' ? encodeName(record.data) : Buffer.from(ipToBytes(record.data))
  const head = Buffer.alloc(10)
  head.writeUInt16BE(types[record.type], 0)
  head.writeUInt16BE(internetClass, 2)
  head.writeUInt32BE(ttlSeconds, 4)
  head.writeUInt16BE(data.length, 8)
  return Buffer.concat([encodeName(record.name), head, data])
}

function encodeName(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.from(label, 'latin1'))
  return Buffer.concat([...labels.flatMap((label) => [Uint8Array.of(label.length), label]), Uint8Array.of(0)])
}
