// The name and type of a question as text.
import { headerLength, type RawMessage } from './message.ts'

const typeNames: Readonly<Record<number, string>> = {
  1: 'A',
  2: 'NS',
  5: 'CNAME',
  6: 'SOA',
  12: 'PTR',
  15: 'MX',
  16: 'TXT',
  28: 'AAAA',
  33: 'SRV',
  35: 'NAPTR',
  43: 'DS',
  48: 'DNSKEY',
  64: 'SVCB',
  65: 'HTTPS',
  255: 'ANY',
}

export function queryTypeName(message: RawMessage): string {
  const type = message.question?.type ?? 0
  return typeNames[type] ?? `TYPE${type}`
}

/** The name without the trailing dot, in its own spelling. Undefined when a label is not plain text, so that no service can have it. */
export function questionName(message: RawMessage): string | undefined {
  const { bytes, question } = message
  if (question === undefined) return undefined
  const labels: string[] = []
  for (let offset = headerLength; offset < question.end; ) {
    const length = bytes.readUInt8(offset)
    if (length === 0) break
    if (length > 63) return undefined
    const label = bytes.toString('latin1', offset + 1, offset + 1 + length)
    if (!/^[A-Za-z0-9_*-]+$/.test(label)) return undefined
    labels.push(label)
    offset += length + 1
  }
  return labels.length === 0 ? undefined : labels.join('.')
}
