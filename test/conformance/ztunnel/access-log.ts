// Topic access-log-metrics.
import assert from 'node:assert/strict'
import {
  createLogging,
  createMetricsRegistry,
  type FormatRecord,
  formatJson,
  formatPlain,
  type LogRecord,
  type MetricsRegistry,
} from '../../../src/observability/index.ts'
import { parseBaggage, parseSpiffeId } from '../../../src/ztunnel/decisions/index.ts'
import {
  type ConnectionFacts,
  createConnectionReports,
  createZtunnelMetrics,
} from '../../../src/ztunnel/telemetry/index.ts'
import { type Data, socketAddress, type TopicRunner } from './topic.ts'

export const runAccessLog: TopicRunner = (one, defaults) => {
  const { expect, connection } = one
  const registry = createMetricsRegistry()
  const plain = report(connection, defaults, registry, formatPlain)
  const [, level, scope, message, fields] = plain.trimEnd().split('\t')
  assert.deepEqual({ level, scope, message }, { level: expect.level, scope: 'access', message: expect.message })
  assert.equal(fields, expect.plain)
  if (expect.json !== undefined) {
    const { time, ...json } = JSON.parse(report(connection, defaults, createMetricsRegistry(), formatJson('message')))
    assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
    assert.deepEqual(json, expect.json)
  }
  if (expect.labels !== undefined) {
    const labels = labelsOf(registry, 'istio_tcp_connections_closed_total')
    for (const [name, value] of Object.entries(expect.labels)) assert.equal(labels[name], value, name)
  }
  for (const [name, value] of Object.entries(expect.counters ?? {})) {
    const family = registry.snapshot().find((one) => one.name === name)
    assert.equal(
      family?.series.reduce((sum, series) => sum + series.value, 0),
      value,
      name,
    )
  }
}

function report(connection: Data, defaults: Data, registry: MetricsRegistry, format: FormatRecord): string {
  const lines: string[] = []
  let time = 0
  const reports = createConnectionReports({
    metrics: createZtunnelMetrics(registry),
    logging: createLogging({
      sink: { write: (line) => void lines.push(line), dropped: 0, flush: async () => {}, flushSync: () => {} },
      format: (record: LogRecord) => format(record),
      filter: new Map([['', 'info']]),
    }),
    now: () => time,
  })
  const ends = { reporter: connection.reporter, src: socketAddress(connection.src), dst: socketAddress(connection.dst) }
  const failure = { error: connection.error, flag: connection.flag ?? 'CONNECT' }
  if (connection.early === true) {
    reports.deny(ends, failure)
    return lines.join('')
  }
  const peerIdentity = connection.peerIdentity ? parseSpiffeId(connection.peerIdentity) : undefined
  const facts: ConnectionFacts = {
    ...ends,
    mutualTls: connection.protocol === 'HBONE',
    ...(connection.authority === undefined ? {} : { hboneAuthority: connection.authority }),
    ...(connection.source === null ? {} : { source: defaults.workloads[connection.source] }),
    ...(connection.destination === null ? {} : { destination: defaults.workloads[connection.destination] }),
    ...(connection.baggage === undefined ? {} : { sourceBaggage: parseBaggage([connection.baggage]) }),
    ...(connection.service === null ? {} : { service: connection.service }),
    ...(peerIdentity === undefined ? {} : { peerIdentity }),
  }
  const open = reports.open(facts)
  open.received(connection.clientToServerBytes)
  open.sent(connection.serverToClientBytes)
  time = connection.durationMs
  open.close(connection.error === null ? undefined : failure)
  return lines.join('')
}

function labelsOf(registry: MetricsRegistry, name: string): Record<string, string | undefined> {
  const family = registry.snapshot().find((one) => one.name === name)
  assert.equal(family?.series.length, 1)
  return Object.fromEntries(family.labelNames.map((label, index) => [label, family.series[0]?.labels[index]]))
}
