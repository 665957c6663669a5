import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogging, createMetricsRegistry } from '../../observability/index.ts'
import { createConnectionReports } from './connections.ts'
import type { ConnectionFacts } from './facts.ts'
import { createZtunnelMetrics } from './metrics.ts'

function world(level: 'info' | 'debug' = 'info') {
  const lines: string[] = []
  const registry = createMetricsRegistry()
  const reports = createConnectionReports({
    metrics: createZtunnelMetrics(registry),
    logging: createLogging({
      sink: { write: (line) => void lines.push(line), dropped: 0, flush: async () => {}, flushSync: () => {} },
      filter: new Map([['', level]]),
    }),
    now: () => 0,
  })
  const series = (name: string) =>
    registry
      .snapshot()
      .filter((family) => family.name === name)
      .flatMap((family) =>
        family.series.map(({ labels, value }) => ({
          value,
          label: (label: string) => labels[family.labelNames.indexOf(label)],
        })),
      )
  return { lines, reports, series, registry }
}

const facts: ConnectionFacts = {
  reporter: 'source',
  src: { ip: '10.0.0.1', port: 1 },
  dst: { ip: 'fd00::1', port: 80 },
  mutualTls: false,
}

test('only the first end of a connection counts', () => {
  const { lines, reports, series } = world()
  const open = reports.open(facts)
  open.close()
  open.close({ error: 'late', flag: 'CONNECT' })
  assert.equal(lines.length, 1)
  assert.equal(series('istio_tcp_connections_closed_total')[0]?.value, 1)
  assert.deepEqual(series('istio_tcp_connections_failed_total'), [])
})

test('the opening is logged at debug, without bytes', () => {
  const { lines, reports } = world('debug')
  reports.open(facts)
  assert.match(
    lines[0] ?? '',
    /\tdebug\taccess\tconnection opened\tsrc\.addr=10\.0\.0\.1:1 dst\.addr=\[fd00::1\]:80 direction="outbound"\n$/,
  )
})

test('what the far end of a double HBONE says replaces the gateway', () => {
  const { lines, reports, series } = world()
  const open = reports.open({ ...facts, mutualTls: true })
  open.setRemoteDestination({
    baggage: { workloadName: 'far-deploy', serviceName: 'far', namespace: 'remote', clusterId: 'c2' },
    identity: { trustDomain: 'td', namespace: 'remote', serviceAccount: 'far' },
  })
  open.sent(5)
  open.close()
  const [closed] = series('istio_tcp_connections_closed_total')
  assert.equal(closed?.label('destination_workload'), 'far-deploy')
  assert.equal(closed?.label('destination_principal'), 'spiffe://td/ns/remote/sa/far')
  assert.equal(series('istio_tcp_sent_bytes_total')[0]?.label('destination_workload'), 'far-deploy')
  assert.match(
    lines[0] ?? '',
    /dst\.workload="far" dst\.namespace="remote" dst\.identity="spiffe:\/\/td\/ns\/remote\/sa\/far"/,
  )
})

test('refusals before a decision count as failed', () => {
  const { reports, series } = world()
  reports.deny(facts, { error: 'no', flag: 'TLS_FAILURE' })
  const [failed] = series('istio_tcp_connections_failed_total')
  assert.deepEqual(
    [failed?.value, failed?.label('response_flags'), failed?.label('reporter')],
    [1, 'TLS_FAILURE', 'source'],
  )
})

test('localities are absent when neither end is known', () => {
  const { reports, series } = world()
  reports.open(facts)
  assert.equal(series('istio_tcp_connections_opened_total')[0]?.label('source_region'), '')
})
