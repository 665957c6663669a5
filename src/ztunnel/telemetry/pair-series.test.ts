import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMetricsRegistry } from '../../observability/index.ts'
import type { ConnectionFacts, KnownWorkload } from './facts.ts'
import { createZtunnelMetrics } from './metrics.ts'
import { createPairSeries } from './pair-series.ts'

const workload = (name: string): KnownWorkload => ({
  name,
  namespace: 'default',
  serviceAccount: name,
  trustDomain: 'cluster.local',
  workloadName: name,
  canonicalName: name,
  canonicalRevision: 'v1',
  clusterId: 'c1',
  locality: { region: '', zone: '', subzone: '' },
})
const [client, server] = [workload('client'), workload('server')]
const facts: ConnectionFacts = {
  reporter: 'source',
  src: { ip: '10.0.0.1', port: 1 },
  dst: { ip: '10.0.0.2', port: 80 },
  mutualTls: true,
  source: client,
  destination: server,
}
const identity = (serviceAccount: string) => ({ trustDomain: 'cluster.local', namespace: 'default', serviceAccount })
const service = (name: string) => ({ name, namespace: 'default', hostname: `${name}.default.svc.cluster.local` })

test('connections with the same labels share their series, whatever their addresses', () => {
  const pairSeries = createPairSeries(createZtunnelMetrics(createMetricsRegistry()))
  const other = { ...facts, src: { ip: '10.0.0.1', port: 2 }, hboneAuthority: '10.0.0.2:80' }
  assert.equal(pairSeries(facts), pairSeries(other))
})

test('what has other labels has other series', () => {
  const registry = createMetricsRegistry()
  const pairSeries = createPairSeries(createZtunnelMetrics(registry))
  const { source: _, ...withoutSource } = facts
  const various: readonly ConnectionFacts[] = [
    facts,
    { ...facts, mutualTls: false },
    { ...facts, reporter: 'destination', peerIdentity: identity('client') },
    { ...facts, reporter: 'destination', peerIdentity: identity('other') },
    { ...facts, service: service('a') },
    { ...facts, service: service('b') },
    { ...facts, destination: workload('another') },
    { ...withoutSource },
    { ...withoutSource, sourceBaggage: { workloadName: 'one' } },
    { ...withoutSource, sourceBaggage: { workloadName: 'two' } },
    { ...facts, remoteDestination: { baggage: { workloadName: 'far' } } },
  ]
  for (const one of various) for (let times = 0; times < 2; times += 1) pairSeries(one).series('sentBytes').inc(1)
  const family = registry.snapshot().find(({ name }) => name === 'istio_tcp_sent_bytes_total')
  assert.deepEqual(
    family?.series.map(({ value }) => value),
    various.map(() => 2),
  )
})
