// How much memory the mesh takes, as a metric.
import type { MetricsRegistry } from '../../observability/index.ts'
import type { MemoryUsage } from '../../shared-memory/index.ts'

export function registerMeshMemoryMetrics(registry: MetricsRegistry, usage: () => MemoryUsage): void {
  const bytes = registry.gauge({
    name: 'lateen_mesh_memory_bytes',
    help: 'The memory of the mesh, shared by all threads: used, reserved so far, and the most there may be',
    labels: ['kind'],
  })
  registry.beforeCollect(() => {
    const { usedBytes, reservedBytes, limitBytes } = usage()
    bytes.with({ kind: 'used' }).set(usedBytes)
    bytes.with({ kind: 'reserved' }).set(reservedBytes)
    bytes.with({ kind: 'limit' }).set(limitBytes)
  })
}
