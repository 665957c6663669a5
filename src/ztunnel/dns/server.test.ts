import assert from 'node:assert/strict'
import { test } from 'node:test'
import dnsPacket from 'dns-packet'
import fc from 'fast-check'
import { meshOf } from '../../../test/support/mesh.ts'
import { createMetricsRegistry, silentLogging } from '../../observability/index.ts'
import { createZtunnelMetrics } from '../telemetry/index.ts'
import { DnsError } from './errors.ts'
import type { Forwarder } from './forwarder.ts'
import { readMessage } from './message.ts'
import { createDnsAnswerer } from './server.ts'

const pod = { name: 'client', namespace: 'ns', serviceAccount: 'default' }
const manyVips = Array.from({ length: 60 }, (_, index) => `"/10.2.0.${index}"`).join(',')
const mesh = `
workloads: [{uid: client, name: client, namespace: ns, serviceAccount: default, workloadIps: [], services: {}, canonicalName: client}]
services:
- {name: s, namespace: ns, hostname: s.ns.svc.cluster.local, vips: [/10.1.0.1], ports: {}}
- {name: many, namespace: ns, hostname: many.ns.svc.cluster.local, vips: [${manyVips}], ports: {}}
- {name: w, namespace: ns, hostname: "*.wild.example", vips: [/10.1.0.2], ports: {}}`

function world(forward: Forwarder['forward'] = () => Promise.reject(new DnsError('NO_SERVERS', 'none'))) {
  const registry = createMetricsRegistry()
  const answerer = createDnsAnswerer({
    state: meshOf(mesh),
    forwarder: { forward },
    metrics: createZtunnelMetrics(registry),
    logging: silentLogging(),
    clusterDomain: 'cluster.local',
    ipv6Enabled: true,
    random: () => 0,
    localWorkloadTimeoutMs: 1,
  })
  const ask = (bytes: Uint8Array, protocol: 'udp' | 'tcp' = 'udp') =>
    answerer.answer(bytes, { pod, from: { ip: '10.0.0.1', port: 1 }, protocol })
  return {
    registry,
    ask,
    async query(packet: dnsPacket.Packet, protocol: 'udp' | 'tcp' = 'udp') {
      const bytes = await ask(dnsPacket.encode({ type: 'query', id: 9, ...packet }), protocol)
      assert.ok(bytes)
      return { bytes, packet: dnsPacket.decode(Buffer.from(bytes)) as dnsPacket.DecodedPacket & { rcode: string } }
    },
  }
}

const question = (name: string, type: dnsPacket.RecordType = 'A') => ({ questions: [{ name, type }] })

test('EDNS of the query is echoed: payload, version, DNSSEC bit', async () => {
  const opt = { type: 'OPT', name: '.', udpPayloadSize: 1232, flags: dnsPacket.DNSSEC_OK } as dnsPacket.OptAnswer
  const { packet } = await world().query({ ...question('s.ns.svc.cluster.local'), additionals: [opt] })
  const [echoed] = (packet.additionals ?? []) as dnsPacket.OptAnswer[]
  assert.deepEqual([echoed?.udpPayloadSize, (echoed?.flags ?? 0) & 0x8000], [1232, 0x8000])
  assert.equal(packet.answers?.length, 1)
})

test('an answer over the limit is cut off and marked over UDP, whole over TCP and with a larger payload', async () => {
  const { query } = world()
  const udp = await query(question('many.ns.svc.cluster.local'))
  assert.deepEqual([udp.packet.flag_tc, udp.packet.answers?.length, udp.bytes.length <= 512], [true, 0, true])
  const tcp = await query(question('many.ns.svc.cluster.local'), 'tcp')
  assert.deepEqual([tcp.packet.flag_tc, tcp.packet.answers?.length], [false, 60])
  const opt = { type: 'OPT', name: '.', udpPayloadSize: 4096 } as dnsPacket.OptAnswer
  const large = await query({ ...question('many.ns.svc.cluster.local'), additionals: [opt] })
  assert.equal(large.packet.answers?.length, 60)
})

test('a wildcard found through the search list answers under the query name, without an alias', async () => {
  const { packet } = await world().query(question('a.wild.example.ns.svc.cluster.local'))
  assert.deepEqual(
    packet.answers?.map(({ type, name }) => [type, name]),
    [['A', 'a.wild.example.ns.svc.cluster.local']],
  )
})

test('other operations are not implemented, answers are no queries, garbage gets silence', async () => {
  const { ask, query } = world()
  assert.equal((await query({ ...question('s'), flags: 4 << 11 })).packet.rcode, 'NOTIMP')
  const response = await ask(dnsPacket.encode({ type: 'response', id: 1, ...question('s') }))
  assert.ok(response)
  assert.equal(readMessage(response).rcode, 1)
  assert.equal(await ask(Uint8Array.of(1, 2, 3)), null)
})

test('a failing upstream is SERVFAIL, and counted', async () => {
  const { query, registry } = world()
  const { packet } = await query(question('elsewhere.example'))
  assert.deepEqual([packet.rcode, packet.flag_aa, packet.flag_ra], ['SERVFAIL', false, true])
  const sum = (name: string) => registry.snapshot().find((one) => one.name === name)?.series[0]?.value
  assert.deepEqual([sum('istio_dns_requests_total'), sum('istio_dns_upstream_failures_total')], [1, 1])
  const timed = registry.snapshot().find((one) => one.name === 'istio_dns_upstream_request_duration_seconds')
  assert.deepEqual(timed?.bounds, [0.0005, 0.001, 0.01, 0.1, 1, 5])
  assert.equal(
    timed?.series[0]?.buckets?.reduce((total, count) => total + count, 0),
    1,
  )
})

test("an upstream's answer keeps its code and records, and loses its authority", async () => {
  const { query } = world(async (asked) =>
    readMessage(
      dnsPacket.encode({
        type: 'response',
        id: 77,
        flags: dnsPacket.AUTHORITATIVE_ANSWER | 3,
        questions: (dnsPacket.decode(asked.bytes).questions ?? []).map((one) => ({
          ...one,
          name: one.name.toLowerCase(),
        })),
      }),
    ),
  )
  const { packet } = await query(question('ElseWhere.example', 'MX'))
  assert.deepEqual([packet.id, packet.rcode, packet.flag_aa], [9, 'NXDOMAIN', false])
  assert.equal(packet.questions?.[0]?.name, 'ElseWhere.example')
})

test('whatever bytes arrive, the answer is a message or silence', async () => {
  const { ask } = world()
  const valid = dnsPacket.encode({ type: 'query', id: 1, ...question('s.ns.svc.cluster.local') })
  const damaged = fc.tuple(fc.nat(), fc.nat(255)).map(([at, value]) => {
    const bytes = Uint8Array.from(valid)
    bytes[at % bytes.length] = value
    return bytes
  })
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.uint8Array({ maxLength: 64 }), damaged), async (bytes) => {
      const answer = await ask(bytes)
      if (answer !== null) assert.ok(readMessage(answer).isResponse)
    }),
  )
})
