// The metrics of an xDS server.
import type { MetricsRegistry } from '../../observability/index.ts'
import type { ConnectionEvents } from './connection.ts'

export interface XdsMetrics {
  readonly events: ConnectionEvents
  /** A wave of changes of these types went out after so long. */
  debounced(ms: number, typeUrls: Iterable<string>): void
  clientAdded(): void
  clientRemoved(): void
  internalError(): void
  /** A client is cut off because it takes nothing. */
  stuck(): void
  /** A request of so many bytes. */
  received(bytes: number): void
}

const shortNames: Readonly<Record<string, string>> = {
  'type.googleapis.com/istio.workload.Address': 'wds',
  'type.googleapis.com/istio.workload.Workload': 'wds',
  'type.googleapis.com/istio.security.Authorization': 'wads',
  'type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig': 'pcds',
  'type.googleapis.com/envoy.config.cluster.v3.Cluster': 'cds',
  'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment': 'eds',
  'type.googleapis.com/envoy.config.listener.v3.Listener': 'lds',
  'type.googleapis.com/envoy.config.route.v3.RouteConfiguration': 'rds',
  'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret': 'sds',
}

/** `served`: the types that are labels by their name; what clients make up is counted as `other`. */
export function createXdsMetrics(registry: MetricsRegistry, version: string, served: ReadonlySet<string>): XdsMetrics {
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
  const stuck = registry.counter({
    name: 'pilot_xds_write_timeout',
    help: 'Number of clients cut off because they took nothing of what they were sent.',
  })
  const times = (name: string, help: string, bounds: readonly number[]) => {
    const series = registry.histogram({ name, help, bounds }).with({})
    return (ms: number): void => series.observe(ms / 1000)
  }
  const fine = [0.01, 0.1, 0.5, 1, 3, 5, 10, 20, 30]
  const coarse = [0.1, 0.5, 1, 3, 5, 10, 20, 30]
  const debounceTime = times('pilot_debounce_time', 'Seconds between the first change of a wave and its push.', fine)
  const sendTime = times('pilot_xds_send_time', 'Seconds until a message to a client has left this process.', fine)
  const queueTime = times('pilot_proxy_queue_time', 'Seconds a change waited for earlier messages of a client.', coarse)
  const convergenceTime = times(
    'pilot_proxy_convergence_time',
    'Seconds between a change and a client having been sent all that follows from it.',
    coarse,
  )
  const largest = registry
    .gauge({ name: 'pilot_xds_recv_max', help: 'The size of the largest XDS request, in bytes.' })
    .with({})
  let largestSeen = 0
  const buildTime = registry.histogram<'type'>({
    name: 'pilot_xds_push_time',
    help: 'Seconds it took to put a message together.',
    labels: ['type'],
    bounds: fine,
  })
  const triggers = registry.counter<'type'>({
    name: 'pilot_push_triggers',
    help: 'Total number of times a push was triggered, by the type that changed.',
    labels: ['type'],
  })
  const labels = (typeUrl: string): { type: string } => ({
    type: served.has(typeUrl) ? (shortNames[typeUrl] ?? typeUrl) : 'other',
  })
  return {
    events: {
      sent(typeUrl, bytes) {
        pushes.with(labels(typeUrl)).inc()
        sizes.with(labels(typeUrl)).observe(bytes)
      },
      built: (typeUrl, ms) => buildTime.with(labels(typeUrl)).observe(ms / 1000),
      lost: (typeUrl) => pushes.with({ type: `${labels(typeUrl).type}_senderr` }).inc(),
      stale: (typeUrl) => expired.with(labels(typeUrl)).inc(),
      rejected: (typeUrl) => rejects.with(labels(typeUrl)).inc(),
      left: sendTime,
      queued: queueTime,
      converged: convergenceTime,
    },
    debounced(ms, typeUrls) {
      debounceTime(ms)
      for (const typeUrl of typeUrls) triggers.with(labels(typeUrl)).inc()
    },
    clientAdded: () => clients.with({ version }).inc(),
    clientRemoved: () => clients.with({ version }).dec(),
    internalError: () => internal.with({}).inc(),
    stuck: () => stuck.with({}).inc(),
    received(bytes) {
      if (bytes <= largestSeen) return
      largestSeen = bytes
      largest.set(bytes)
    },
  }
}
