import assert from 'node:assert/strict'
import { test } from 'node:test'
import dnsPacket from 'dns-packet'
import { DnsError } from './errors.ts'
import { createForwarder } from './forwarder.ts'
import { readMessage } from './message.ts'
import { parseResolvConf } from './resolv-conf.ts'
import type { ExchangeOptions } from './transport.ts'

const resolvConf = { nameservers: ['192.0.2.1', '192.0.2.2'], searchDomains: [], timeoutMs: 100, attempts: 2 }
const query = (name = 'a.example') =>
  readMessage(dnsPacket.encode({ type: 'query', id: 1, flags: 0x100, questions: [{ name, type: 'A' }] }))

function answerOf(message: Buffer, ttl: number, flags = 0): Buffer {
  const { questions = [], id } = dnsPacket.decode(message)
  const answers: dnsPacket.Answer[] =
    flags === 0 ? [{ type: 'A', name: questions[0]?.name ?? '', ttl, data: '1.2.3.4' }] : []
  return dnsPacket.encode({ type: 'response', id: id ?? 0, flags, questions, answers })
}

const ttlOf = (bytes: Buffer): number | undefined => (dnsPacket.decode(bytes).answers?.[0] as { ttl?: number })?.ttl

test('an answer is kept for its time, and its time runs', async () => {
  let now = 0
  let asked = 0
  const forwarder = createForwarder({
    resolvConf,
    now: () => now,
    exchange: async (message) => {
      asked += 1
      return answerOf(message, 60)
    },
  })
  await forwarder.forward(query(), { protocol: 'udp' })
  now = 20_000
  const second = await forwarder.forward(query('A.EXAMPLE'), { protocol: 'tcp' })
  assert.deepEqual([asked, ttlOf(second.bytes)], [1, 40])
  now = 61_000
  await forwarder.forward(query(), { protocol: 'udp' })
  assert.equal(asked, 2)
})

test('errors and negative answers without a SOA are not kept; the cache is bounded', async () => {
  let asked = 0
  const flags = 3
  const forwarder = createForwarder({
    resolvConf,
    cacheEntries: 2,
    exchange: async (message) => {
      asked += 1
      return answerOf(message, 60, dnsPacket.decode(message).questions?.[0]?.name === 'gone.example' ? flags : 0)
    },
  })
  for (const name of [
    'gone.example',
    'gone.example',
    'a.example',
    'b.example',
    'c.example',
    'a.example',
    'c.example',
  ]) {
    await forwarder.forward(query(name), { protocol: 'udp' })
  }
  assert.equal(asked, 6)
})

test('every server is tried, as often as configured, each time with another id', async () => {
  const tried: string[] = []
  const ids = new Set<number>()
  const forwarder = createForwarder({
    resolvConf,
    exchange: async (message, { server }: ExchangeOptions) => {
      tried.push(server.ip)
      ids.add(message.readUInt16BE(0))
      throw new DnsError('TIMEOUT', 'no answer')
    },
  })
  await assert.rejects(forwarder.forward(query(), { protocol: 'udp' }), { code: 'TIMEOUT' })
  assert.deepEqual(tried, ['192.0.2.1', '192.0.2.2', '192.0.2.1', '192.0.2.2'])
  assert.ok(ids.size > 1)
})

test('more queries than the bound are refused', async () => {
  const gate = Promise.withResolvers<Buffer>()
  const forwarder = createForwarder({ resolvConf, maxInFlight: 1, exchange: () => gate.promise })
  const first = forwarder.forward(query(), { protocol: 'udp' })
  await assert.rejects(forwarder.forward(query('b.example'), { protocol: 'udp' }), { code: 'OVERLOADED' })
  gate.resolve(answerOf(query().bytes, 1))
  await first
})

test('the resolver configuration is read as resolvers do', () => {
  const text =
    '# comment\nnameserver 10.0.0.10\nnameserver bad\nsearch ns.svc.cluster.local. cluster.local\noptions ndots:5 timeout:1 attempts:9\n'
  assert.deepEqual(parseResolvConf(text), {
    nameservers: ['10.0.0.10'],
    searchDomains: ['ns.svc.cluster.local', 'cluster.local'],
    timeoutMs: 1000,
    attempts: 5,
  })
})
