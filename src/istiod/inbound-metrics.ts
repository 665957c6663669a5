// Counts what comes in: objects of the clusters, by what they are to the mesh.
import type { MetricsRegistry } from '../observability/index.ts'
import type { Inbound } from './cluster.ts'

export function countInbound(registry: MetricsRegistry): Inbound {
  const updates = registry.counter<'type'>({
    name: 'pilot_inbound_updates',
    help: 'Total number of updates received by pilot.',
    labels: ['type'],
  })
  return (kind, change) => {
    switch (kind) {
      case 'services':
        updates.with({ type: change === 'deleted' ? 'svcdelete' : 'svc' }).inc()
        break
      case 'endpointSlices':
      case 'pods':
        updates.with({ type: 'eds' }).inc()
        break
      default:
        updates.with({ type: 'config' }).inc()
    }
  }
}
