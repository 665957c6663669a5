// Metrics of the process as a whole: its version, how long it runs, how many services and endpoints it serves, and why it ends connections.
import type { EndpointCounts } from '../discovery/ambient/index.ts'
import type { ConnectionEnd, GrpcConnections } from '../grpc/server/index.ts'
import type { MetricsRegistry } from '../observability/index.ts'

export function describeProcess(metrics: MetricsRegistry, version: string): void {
  metrics
    .gauge<'version'>({ name: 'pilot_info', help: 'Pilot version and build information.', labels: ['version'] })
    .with({ version })
    .set(1)
  const uptime = metrics.gauge({ name: 'istiod_uptime_seconds', help: 'Current istiod server uptime in seconds' })
  metrics.beforeCollect(() => uptime.with({}).set(process.uptime()))
}

export function countServices(metrics: MetricsRegistry, count: () => number): void {
  const services = metrics.gauge({ name: 'pilot_services', help: 'Total services known to pilot.' }).with({})
  metrics.beforeCollect(() => services.set(count()))
}

export function countEndpoints(metrics: MetricsRegistry, count: () => EndpointCounts): void {
  const withoutPod = metrics.gauge({ name: 'endpoint_no_pod', help: 'Endpoints without an associated pod.' }).with({})
  const notReady = metrics
    .gauge({ name: 'pilot_endpoint_not_ready', help: 'Endpoints that are served as unhealthy.' })
    .with({})
  metrics.beforeCollect(() => {
    const counts = count()
    withoutPod.set(counts.withoutPod)
    notReady.set(counts.notReady)
  })
}

/** Returns what is to be told of each connection that we end. */
export function countConnections(
  metrics: MetricsRegistry,
  connections: () => readonly Pick<GrpcConnections, 'size' | 'unproven'>[],
): (end: ConnectionEnd) => void {
  const open = metrics.gauge<'state'>({
    name: 'lateen_grpc_connections',
    help: 'Open connections of the gRPC ports; unproven: no caller has proved who it is yet.',
    labels: ['state'],
  })
  metrics.beforeCollect(() => {
    const sum = (of: (one: Pick<GrpcConnections, 'size' | 'unproven'>) => number): number =>
      connections().reduce((total, one) => total + of(one), 0)
    open.with({ state: 'unproven' }).set(sum(({ unproven }) => unproven))
    open.with({ state: 'known' }).set(sum(({ size, unproven }) => size - unproven))
  })
  const ended = metrics.counter<'reason'>({
    name: 'lateen_grpc_connections_ended_total',
    help: 'Connections of the gRPC ports that were ended from here, by the reason.',
    labels: ['reason'],
  })
  return (reason) => ended.with({ reason }).inc()
}
