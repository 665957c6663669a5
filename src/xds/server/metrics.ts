// The metrics of an xDS server.
import type { MetricsRegistry } from '../../observability/index.ts'
import type { ConnectionEvents } from './connection.ts'

export interface XdsMetrics {
  readonly events: ConnectionEvents
  clientAdded(): void
  clientRemoved(): void
  internalError(): void
}

const shortNames: Readonly<Record<string, string>> = {
  'type.googleapis.com/istio.workload.Address': 'wds',
  'type.googleapis.com/istio.workload.Workload': 'wds',
  'type.googleapis.com/istio.security.Authorization': 'wads',
  'type.googleapis.com/envoy.config.cluster.v3.Cluster': 'cds',
  'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment': 'eds',
  'type.googleapis.com/envoy.config.listener.v3.Listener': 'lds',
  'type.googleapis.com/envoy.config.route.v3.RouteConfiguration': 'rds',
  'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret': 'sds',
}

export function createXdsMetrics(registry: MetricsRegistry, version: string): XdsMetrics {
  const clients = registry.gauge<'version'>({
    name: 'pilot_xds',
    help: 'Number of endpoints connected to this pilot using XDS.',
    labels: ['version'],
  })
  const pushes = registry.counter<'type'>({
    name: 'pilot_xds_pushes',
    help: 'Pilot build and send errors and counts, by type.',
    labels: ['type'],
  })
  const sizes = registry.histogram<'type'>({
    name: 'pilot_xds_config_size_bytes',
    help: 'Distribution of configuration sizes pushed to clients.',
    labels: ['type'],
    bounds: [1, 10_000, 1_000_000, 4_000_000, 10_000_000, 40_000_000],
  })
  const expired = registry.counter<'type'>({
    name: 'pilot_xds_expired_nonce',
    help: 'Total number of XDS requests with an expired nonce.',
    labels: ['type'],
  })
  const rejects = registry.counter<'type'>({
    name: 'pilot_total_xds_rejects',
    help: 'Total number of XDS responses from pilot rejected by proxy.',
    labels: ['type'],
  })
  const internal = registry.counter({
    name: 'pilot_total_xds_internal_errors',
    help: 'Total number of internal XDS errors in pilot.',
  })
  const labels = (typeUrl: string): { type: string } => ({ type: shortNames[typeUrl] ?? typeUrl })
  return {
    events: {
      sent(typeUrl, bytes) {
        pushes.with(labels(typeUrl)).inc()
        sizes.with(labels(typeUrl)).observe(bytes)
      },
      stale: (typeUrl) => expired.with(labels(typeUrl)).inc(),
      rejected: (typeUrl) => rejects.with(labels(typeUrl)).inc(),
    },
    clientAdded: () => clients.with({ version }).inc(),
    clientRemoved: () => clients.with({ version }).dec(),
    internalError: () => internal.with({}).inc(),
  }
}
