// The metrics of remote clusters.
import type { MetricsRegistry } from '../observability/index.ts'

export interface RemoteMetrics {
  counted(remotes: number): void
  event(event: 'add' | 'update' | 'delete'): void
  synced(cluster: string, isSynced: boolean): void
  forget(cluster: string): void
  timeout(): void
}

export function createRemoteMetrics(registry: MetricsRegistry): RemoteMetrics {
  const clusters = registry.gauge<'cluster_type'>({
    name: 'istiod_managed_clusters',
    help: 'Number of clusters managed by istiod',
    labels: ['cluster_type'],
  })
  const timeouts = registry.counter({
    name: 'remote_cluster_sync_timeouts_total',
    help: 'Number of times remote clusters took too long to sync, causing slow startup that excludes remote clusters.',
  })
  const status = registry.gauge<'cluster'>({
    name: 'istiod_remote_cluster_sync_status',
    help: 'Whether the remote cluster is read: 1 or 0.',
    labels: ['cluster'],
  })
  const events = registry.counter<'event'>({
    name: 'remote_cluster_secret_events_total',
    help: 'Changes of the Secrets of remote clusters.',
    labels: ['event'],
  })
  clusters.with({ cluster_type: 'local' }).set(1)
  clusters.with({ cluster_type: 'remote' }).set(0)
  return {
    counted: (remotes) => clusters.with({ cluster_type: 'remote' }).set(remotes),
    event: (event) => events.with({ event }).inc(),
    synced: (cluster, isSynced) => status.with({ cluster }).set(isSynced ? 1 : 0),
    forget: (cluster) => status.remove({ cluster }),
    timeout: () => timeouts.with({}).inc(),
  }
}
