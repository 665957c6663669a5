// The metric families of the node proxy.
import type { Counter, Gauge, Histogram, MetricFamilies } from '../../observability/index.ts'
import { sourceLabelNames, trafficLabelNames } from './labels.ts'

type TrafficLabel = (typeof trafficLabelNames)[number]
type DnsLabel = 'request_query_type' | 'request_protocol' | 'source_canonical_service' | 'source_canonical_revision'

export interface ZtunnelMetrics {
  readonly connectionsOpened: Counter<TrafficLabel>
  readonly connectionsClosed: Counter<TrafficLabel>
  /** Bytes client → server, whichever side reports. */
  readonly receivedBytes: Counter<TrafficLabel>
  /** Bytes server → client, whichever side reports. */
  readonly sentBytes: Counter<TrafficLabel>
  readonly connectionsFailed: Counter<TrafficLabel>
  readonly socketsOpen: Gauge<'reporter'>
  readonly onDemandDns: Counter<(typeof sourceLabelNames)[number] | 'hostname'>
  readonly crlRejections: Counter<'reporter'>
  readonly dnsRequests: Counter<DnsLabel>
  readonly dnsUpstreamRequests: Counter<DnsLabel>
  readonly dnsUpstreamFailures: Counter<DnsLabel>
  readonly dnsUpstreamSeconds: Histogram<DnsLabel>
  readonly xdsTerminations: Counter<'reason'>
  readonly xdsMessages: Counter<'url'>
  readonly xdsMessageBytes: Counter<'url'>
  readonly activeProxies: Gauge
  readonly pendingProxies: Gauge
  readonly proxiesStarted: Counter
  readonly proxiesStopped: Counter
  readonly workerThreads: Gauge
}

export interface BuildFacts {
  /** The value of `tag`. */
  readonly istioVersion: string
}

const traffic = { labels: trafficLabelNames }
const reporter: { readonly labels: readonly 'reporter'[] } = { labels: ['reporter'] }
const dns: { readonly labels: readonly DnsLabel[] } = {
  labels: ['request_query_type', 'request_protocol', 'source_canonical_service', 'source_canonical_revision'],
}

const unstable = (help: string): string => `${help} (unstable)`

/** What runs here, as a gauge whose value is 1. Once a process. */
export function registerBuildMetric(families: MetricFamilies, build: BuildFacts): void {
  families
    .gauge({ name: 'istio_build', help: 'Istio component build info', labels: ['component', 'tag'] })
    .with({ component: 'ztunnel', tag: build.istioVersion })
    .set(1)
}

/** Registers every family of the data plane and of what feeds it, the same on the main thread and on workers. */
export function createZtunnelMetrics(families: MetricFamilies): ZtunnelMetrics {
  const counter = <L extends string>(name: string, help: string, labels: readonly L[]) =>
    families.counter({ name, help, labels })
  return {
    connectionsOpened: counter(
      'istio_tcp_connections_opened_total',
      'The total number of TCP connections opened',
      traffic.labels,
    ),
    connectionsClosed: counter(
      'istio_tcp_connections_closed_total',
      'The total number of TCP connections closed',
      traffic.labels,
    ),
    receivedBytes: counter(
      'istio_tcp_received_bytes_total',
      'The size of total bytes received during request in case of a TCP connection',
      traffic.labels,
    ),
    sentBytes: counter(
      'istio_tcp_sent_bytes_total',
      'The size of total bytes sent during response in case of a TCP connection',
      traffic.labels,
    ),
    connectionsFailed: counter(
      'istio_tcp_connections_failed_total',
      unstable('The total number of TCP connections that failed'),
      traffic.labels,
    ),
    socketsOpen: families.gauge({
      name: 'istio_tcp_sockets_open',
      help: unstable('The current number of accepted sockets'),
      ...reporter,
    }),
    onDemandDns: counter(
      'istio_on_demand_dns_total',
      unstable('The total number of connections that needed a name resolved'),
      [...sourceLabelNames, 'hostname'],
    ),
    crlRejections: counter(
      'istio_crl_policy_rejections_total',
      unstable('The total number of connections rejected by a certificate revocation list'),
      reporter.labels,
    ),
    dnsRequests: counter('istio_dns_requests_total', unstable('The total number of DNS requests'), dns.labels),
    dnsUpstreamRequests: counter(
      'istio_dns_upstream_requests_total',
      unstable('The total number of DNS requests forwarded upstream'),
      dns.labels,
    ),
    dnsUpstreamFailures: counter(
      'istio_dns_upstream_failures_total',
      unstable('The total number of forwarded DNS requests that failed'),
      dns.labels,
    ),
    dnsUpstreamSeconds: families.histogram({
      name: 'istio_dns_upstream_request_duration_seconds',
      help: unstable('The time in seconds a forwarded DNS request takes'),
      ...dns,
      bounds: [0.0005, 0.001, 0.01, 0.1, 1, 5],
    }),
    xdsTerminations: counter(
      'istio_xds_connection_terminations_total',
      unstable('The total number of xDS connections that ended'),
      ['reason'],
    ),
    xdsMessages: counter('istio_xds_message_total', unstable('The total number of xDS messages received'), ['url']),
    xdsMessageBytes: counter(
      'istio_xds_message_bytes_total',
      unstable('The total number of bytes of xDS messages received'),
      ['url'],
    ),
    activeProxies: families.gauge({
      name: 'workload_manager_active_proxy_count',
      help: unstable('The current number of pods served'),
    }),
    pendingProxies: families.gauge({
      name: 'workload_manager_pending_proxy_count',
      help: unstable('The current number of pods whose proxy could not start yet'),
    }),
    proxiesStarted: counter(
      'workload_manager_proxies_started_total',
      unstable('The total number of pod proxies started'),
      [],
    ),
    proxiesStopped: counter(
      'workload_manager_proxies_stopped_total',
      unstable('The total number of pod proxies stopped'),
      [],
    ),
    workerThreads: families.gauge({
      name: 'ztunnel_worker_threads',
      help: unstable('The number of worker threads that carry connections'),
    }),
  }
}
