// Forwards queries to the process's own name servers, and remembers the answers as long as they allow.
import { randomInt } from 'node:crypto'
import type { NetworkNamespace } from '../../linux/index.ts'
import { DnsError } from './errors.ts'
import { isOpt, type RawMessage, rcodes, readEdns, readMessage, readRecords } from './message.ts'
import type { ResolvConf } from './resolv-conf.ts'
import type { Exchange } from './transport.ts'

export interface Forwarder {
  /** The upstream's answer, with an id of its own. Rejects with a DnsError when no server answers. */
  forward(query: RawMessage, from: ForwardOptions): Promise<RawMessage>
}

export interface ForwardOptions {
  readonly protocol: 'udp' | 'tcp'
  readonly namespace?: NetworkNamespace
}

export interface ForwarderOptions {
  readonly resolvConf: ResolvConf
  readonly exchange: Exchange
  /** 53. */
  readonly port?: number
  readonly cacheEntries?: number
  /** Queries waiting for an upstream at most; more are refused. */
  readonly maxInFlight?: number
  /** Milliseconds, monotonic. */
  readonly now?: () => number
}

interface Cached {
  readonly message: RawMessage
  readonly storedAt: number
  readonly ttlSeconds: number
}

const maxTtlSeconds = 86_400

export function createForwarder(options: ForwarderOptions): Forwarder {
  const { resolvConf, exchange, port = 53, cacheEntries = 4096, maxInFlight = 4096 } = options
  const now = options.now ?? (() => performance.now())
  const cache = new Map<string, Cached>()
  let inFlight = 0

  async function ask(query: RawMessage, from: ForwardOptions): Promise<RawMessage> {
    let last: unknown = new DnsError('NO_SERVERS', 'no name server is configured')
    for (let attempt = 0; attempt < resolvConf.attempts; attempt += 1) {
      for (const ip of resolvConf.nameservers) {
        const message = Buffer.from(query.bytes)
        message.writeUInt16BE(randomInt(0x10000), 0)
        try {
          const server = { ip, port }
          return readMessage(await exchange(message, { ...from, server, timeoutMs: resolvConf.timeoutMs }))
        } catch (error) {
          last = error
        }
      }
    }
    throw last instanceof DnsError ? last : new DnsError('UPSTREAM_FAILED', String(last), { cause: last })
  }

  return {
    async forward(query, from) {
      const key = cacheKey(query)
      const known = key === undefined ? undefined : fresh(cache, key, now())
      if (known !== undefined) return known
      if (inFlight >= maxInFlight) throw new DnsError('OVERLOADED', `${inFlight} queries are waiting already`)
      inFlight += 1
      try {
        const message = await ask(query, from)
        const ttlSeconds = cacheableSeconds(message)
        if (key !== undefined && ttlSeconds > 0) {
          cache.delete(key)
          cache.set(key, { message, storedAt: now(), ttlSeconds })
          for (const oldest of cache.keys()) {
            if (cache.size <= cacheEntries) break
            cache.delete(oldest)
          }
        }
        return message
      } finally {
        inFlight -= 1
      }
    },
  }
}

/** Name, type and class, and whether DNSSEC records were asked for. Undefined: not a plain question. */
function cacheKey(query: RawMessage): string | undefined {
  if (query.questionCount !== 1 || query.opcode !== 0 || query.question === undefined) return undefined
  const flags = query.bytes.readUInt16BE(2) & 0x0110
  const edns = readEdns(readRecords(query))
  return `${query.question.key}|${flags}|${edns === undefined ? 'none' : edns.dnssecOk}`
}

/** A copy of the remembered answer with the time it was kept taken off its TTLs. */
function fresh(cache: Map<string, Cached>, key: string, now: number): RawMessage | undefined {
  const cached = cache.get(key)
  if (cached === undefined) return undefined
  const age = Math.floor((now - cached.storedAt) / 1000)
  if (age >= cached.ttlSeconds) {
    cache.delete(key)
    return undefined
  }
  const bytes = Buffer.from(cached.message.bytes)
  for (const record of readRecords(cached.message)) {
    if (!isOpt(record)) bytes.writeUInt32BE(Math.max(0, record.ttl - age), record.ttlOffset)
  }
  return { ...cached.message, bytes }
}

/** How long an answer may be kept: its lowest TTL; a negative one only with the SOA that says so (RFC 2308). */
function cacheableSeconds(message: RawMessage): number {
  if (message.isTruncated || (message.rcode !== rcodes.noError && message.rcode !== rcodes.nameError)) return 0
  try {
    const records = readRecords(message).filter((record) => !isOpt(record))
    const soaType = 6
    const isNegative = !records.some((record) => record.section === 'answer')
    const soa = records.find((record) => record.section === 'authority' && record.type === soaType)
    if (isNegative && (soa === undefined || soa.dataLength < 4)) return 0
    const minimum = soa === undefined ? maxTtlSeconds : message.bytes.readUInt32BE(soa.dataOffset + soa.dataLength - 4)
    const ttls = records.map((record) => record.ttl)
    return Math.min(maxTtlSeconds, ...ttls, isNegative ? minimum : maxTtlSeconds)
  } catch (error) {
    if (error instanceof DnsError) return 0
    throw error
  }
}
