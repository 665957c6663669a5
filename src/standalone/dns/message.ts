// DNS messages: from a query's bytes to an answer's. Pure.
import * as packet from 'dns-packet'
import type { Answer, Resolution } from './records.ts'

const ttlSeconds = 5
const rcodes = { noerror: 0, formerr: 1, servfail: 2, nxdomain: 3, notimp: 4 } as const
const authoritative = 0x0400
const recursionAvailable = 0x0080
const truncated = 0x0200

export interface Query {
  readonly id: number
  readonly name: string
  readonly type: string
  readonly packet: packet.Packet
  /** The largest UDP answer the client takes. */
  readonly maxBytes: number
}

/** The query, or undefined for bytes that are none. */
export function decodeQuery(bytes: Buffer): Query | undefined {
  try {
    const decoded = packet.decode(bytes)
    const [question] = decoded.questions ?? []
    if (decoded.type !== 'query' || question === undefined || decoded.questions?.length !== 1) return undefined
    const opt = decoded.additionals?.find((record) => record.type === 'OPT') as { udpPayloadSize?: number } | undefined
    const maxBytes = Math.min(Math.max(512, opt?.udpPayloadSize ?? 512), 4096)
    return { id: decoded.id ?? 0, name: question.name, type: question.type, packet: decoded, maxBytes }
  } catch {
    return undefined
  }
}

export function encodeResolution(
  query: Query,
  resolution: Exclude<Resolution, { kind: 'forward' }>,
  zone: string,
): Buffer {
  const found = resolution.kind === 'answers'
  const answers = found ? resolution.answers.map(record) : []
  const soa: packet.Answer = {
    type: 'SOA',
    name: zone,
    ttl: ttlSeconds,
    data: {
      mname: `ns.dns.${zone}`,
      rname: `hostmaster.${zone}`,
      serial: 1,
      refresh: 7200,
      retry: 1800,
      expire: 86_400,
      minimum: ttlSeconds,
    },
  }
  return encode(query, found ? rcodes.noerror : rcodes.nxdomain, authoritative, {
    answers,
    authorities: answers.length === 0 ? [soa] : [],
    additionals: found ? resolution.additionals.map(record) : [],
  })
}

export function encodeFailure(query: Query, rcode: keyof typeof rcodes): Buffer {
  return encode(query, rcodes[rcode], 0, {})
}

/** An empty answer that tells the client to ask again over TCP. */
export function encodeTruncated(query: Query): Buffer {
  return encode(query, rcodes.noerror, truncated, {})
}

function encode(
  query: Query,
  rcode: number,
  flags: number,
  sections: Pick<packet.Packet, 'answers' | 'authorities' | 'additionals'>,
): Buffer {
  const wantsRecursion = (query.packet.flags ?? 0) & packet.RECURSION_DESIRED
  const questions = query.packet.questions ?? []
  return packet.encode({
    type: 'response',
    id: query.id,
    flags: flags | rcode | wantsRecursion | recursionAvailable,
    questions,
    ...sections,
  })
}

function record(answer: Answer): packet.Answer {
  const { name } = answer
  switch (answer.kind) {
    case 'A':
    case 'AAAA':
      return { type: answer.kind, name, ttl: ttlSeconds, data: answer.ip }
    case 'SRV': {
      const { target, port, weight } = answer
      return { type: 'SRV', name, ttl: ttlSeconds, data: { target, port, weight, priority: 0 } }
    }
    case 'CNAME':
    case 'PTR':
      return { type: answer.kind, name, ttl: ttlSeconds, data: answer.target }
    case 'TXT':
      return { type: 'TXT', name, ttl: ttlSeconds, data: answer.text }
  }
}
