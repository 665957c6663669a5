// How many tunnel connections each worker serves, as a metric.
import type { MetricsRegistry } from '../../observability/index.ts'
import type { TunnelCounts } from './tunnel-balance.ts'

export function registerTunnelMetrics(registry: MetricsRegistry, counts: TunnelCounts): void {
  const connections = registry.gauge({
    name: 'lateen_tunnel_connections',
    help: 'The tunnel connections of peers that a worker serves',
    labels: ['worker'],
  })
  registry.beforeCollect(() => {
    for (const worker of counts.keys())
      connections.with({ worker: `worker ${worker}` }).set(Atomics.load(counts, worker))
  })
}
