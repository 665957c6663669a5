// What counting and exposing cost the node proxy: the labels of a connection and one addition, a connection's whole report, and the text
// that a scraper gets.
import { createLogging, createMetricsRegistry, renderMetrics } from '../src/observability/index.ts'
import {
  type ConnectionFacts,
  createConnectionReports,
  createZtunnelMetrics,
  trafficLabels,
} from '../src/ztunnel/telemetry/index.ts'

const workload = (name: string): NonNullable<ConnectionFacts['source']> => ({
  name: `${name}-7d8f9c6b5-x2x4z`,
  namespace: 'shop',
  serviceAccount: name,
  trustDomain: 'cluster.local',
  workloadName: name,
  canonicalName: name,
  canonicalRevision: 'v1',
  clusterId: 'Kubernetes',
  locality: { region: 'eu', zone: 'eu-1', subzone: '' },
})

const factsOf = (index: number): ConnectionFacts => ({
  reporter: 'source',
  src: { ip: '10.0.0.1', port: 40_000 },
  dst: { ip: '10.0.0.2', port: 15_008 },
  hboneAuthority: '10.0.0.2:8080',
  mutualTls: true,
  source: workload(`client${index}`),
  destination: workload('server'),
  service: { name: 'server', namespace: 'shop', hostname: 'server.shop.svc.cluster.local' },
})

const pairs = 1000

export async function run(): Promise<Record<string, number | string>[]> {
  const registry = createMetricsRegistry()
  const metrics = createZtunnelMetrics(registry)
  let lines = 0
  const write = (): void => {
    lines += 1
  }
  const sink = { write, dropped: 0, flush: async () => undefined, flushSync: () => undefined }
  const reports = createConnectionReports({ metrics, logging: createLogging({ sink }) })
  const all = Array.from({ length: pairs }, (_, index) => factsOf(index))
  const pick = (index: number): ConnectionFacts => all[index % pairs] ?? factsOf(index)

  const counted = perSecond((index) => metrics.connectionsOpened.with(trafficLabels(pick(index), '-')).inc())
  const reported = perSecond((index) => {
    const connection = reports.open(pick(index))
    connection.received(1)
    connection.sent(1)
    connection.close()
  })
  const encoded = perSecond(() => renderMetrics(registry, 'text'))
  if (lines === 0) throw new Error('nothing was logged')
  return [
    {
      benchmark: 'metrics',
      'write/s': counted,
      'connections reported and logged/s': reported,
      'encode/s': encoded,
      series: registry.snapshot().reduce((sum, { series }) => sum + series.length, 0),
    },
  ]
}

/** How often a second, over half a second after as much to warm up. */
function perSecond(run: (index: number) => unknown): number {
  let count = 0
  const spend = (ms: number): number => {
    const start = performance.now()
    let elapsed = 0
    for (count = 0; elapsed < ms; count += 1) {
      run(count)
      elapsed = performance.now() - start
    }
    return elapsed
  }
  spend(500)
  const elapsed = spend(500)
  return Math.round((count / elapsed) * 1000)
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(await run(), undefined, 2)}\n`)
