// Topic dns: queries as bytes through the answerer, over both protocols, with an upstream that knows what the case says.
import assert from 'node:assert/strict'
import dnsPacket from 'dns-packet'
import { createMetricsRegistry, silentLogging } from '../../../src/observability/index.ts'
import {
  createDnsAnswerer,
  createForwarder,
  expandName,
  podSearchDomains,
  wildcardForms,
} from '../../../src/ztunnel/dns/index.ts'
import { createZtunnelMetrics } from '../../../src/ztunnel/telemetry/index.ts'
import { type Data, meshOf, seededRandom, type TopicRunner } from './topic.ts'

export const runDns: TopicRunner = async (one, defaults) => {
  const clusterDomain: string = defaults.proxy.clusterDomain
  switch (one.kind) {
    case 'expansions':
      assert.deepEqual(expandName(one.input, { clientNamespace: 'ns1', clusterDomain }), one.expect)
      return
    case 'wildcards':
      assert.deepEqual(wildcardForms(one.input), one.expect)
      return
    case 'searchDomains':
      assert.deepEqual(podSearchDomains(one.input.namespace, clusterDomain), one.expect)
      return
    case 'query':
      for (const protocol of ['udp', 'tcp'] as const) await runQuery(one, defaults, protocol)
      return
    default:
      throw new Error(`unknown kind ${one.kind}`)
  }
}

async function runQuery(one: Data, defaults: Data, protocol: 'udp' | 'tcp'): Promise<void> {
  const proxy = { ...defaults.proxy, ...one.proxy }
  const answerer = createDnsAnswerer({
    state: meshOf(undefined, defaults.base, one.state),
    forwarder: createForwarder({
      resolvConf: { nameservers: ['192.0.2.53'], searchDomains: [], timeoutMs: 1000, attempts: 1 },
      exchange: async (message) => upstreamAnswer(message, defaults.upstream),
    }),
    metrics: createZtunnelMetrics(createMetricsRegistry()),
    logging: silentLogging(),
    clusterDomain: proxy.clusterDomain,
    searchDomains: one.searchDomains ?? defaults.searchDomains,
    ipv6Enabled: proxy.ipv6Enabled,
    preferredServiceNamespace: proxy.preferredServiceNamespace,
    random: seededRandom(),
    localWorkloadTimeoutMs: 1,
  })
  const query = dnsPacket.encode({
    type: 'query',
    id: 7,
    flags: dnsPacket.RECURSION_DESIRED,
    questions: [{ name: one.query.name, type: one.query.type }],
  })
  const client = { pod: one.client ?? defaults.client, from: { ip: '10.0.0.1', port: 5353 }, protocol }
  const bytes = await answerer.answer(query, client)
  assert.ok(bytes)
  const answer = dnsPacket.decode(Buffer.from(bytes)) as Data
  assert.equal(answer.id, 7)
  assert.equal(answer.rcode, one.expect.rcode)
  if (one.expect.authoritative !== undefined) assert.equal(answer.flag_aa, one.expect.authoritative)
  if (one.expect.answers !== undefined) {
    const records = answer.answers.map(({ name, type, data }: Data) => [name, type, data].join(' ').toLowerCase())
    assert.deepEqual(records.sort(), one.expect.answers.map((record: Data) => record.join(' ').toLowerCase()).sort())
  }
  if (one.expect.ttl !== undefined) for (const record of answer.answers) assert.equal(record.ttl, one.expect.ttl)
}

function upstreamAnswer(message: Buffer, upstream: Data): Buffer {
  const query = dnsPacket.decode(message) as Data
  const [question] = query.questions
  const known = upstream[question.name]
  const addresses: string[] = known?.[question.type] ?? []
  const notFound = 3
  return dnsPacket.encode({
    type: 'response',
    id: query.id,
    flags: dnsPacket.RECURSION_DESIRED | dnsPacket.AUTHORITATIVE_ANSWER | (known === undefined ? notFound : 0),
    questions: query.questions,
    answers: addresses.map((data) => ({ type: question.type, name: question.name, ttl: 60, data })),
  })
}
