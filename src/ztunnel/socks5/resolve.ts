// Host names of SOCKS5 clients, asked of the pod's own DNS proxy.
import packet from 'dns-packet'
import { canonicalIp } from '../state/address.ts'

/** A question as a DNS client sends it. */
export function encodeQuestion(hostname: string, family: 4 | 6): Buffer {
  const name = hostname.replace(/\.$/, '')
  const flags = packet.RECURSION_DESIRED
  return packet.encode({ type: 'query', id: 0, flags, questions: [{ name, type: family === 4 ? 'A' : 'AAAA' }] })
}

/** The first address of an answer; undefined when it has none or is no answer. */
export function firstAddress(answer: Uint8Array | null, family: 4 | 6): string | undefined {
  if (answer === null) return undefined
  const type = family === 4 ? 'A' : 'AAAA'
  try {
    for (const record of packet.decode(Buffer.from(answer)).answers ?? []) {
      if (record.type === type) return canonicalIp(record.data)
    }
    return undefined
  } catch {
    return undefined
  }
}
