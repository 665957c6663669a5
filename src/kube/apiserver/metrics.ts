// Prometheus figures of the server.
import { createMetricsRegistry, registerProcessMetrics, renderMetrics } from '../../observability/index.ts'
import type { RequestTarget } from './path.ts'
import type { Store } from './store/store.ts'

export interface RequestMetrics {
  observe(verb: string, target: RequestTarget, code: number, milliseconds: number): void
  /** Counts a watch as running; returns the function that ends that. */
  watchStarted(target: RequestTarget): () => void
  text(): Promise<string>
}

export function createRequestMetrics(store: Store): RequestMetrics {
  const registry = createMetricsRegistry()
  registerProcessMetrics(registry)
  const durations = registry.histogram<'verb' | 'group' | 'version' | 'resource' | 'subresource' | 'code'>({
    name: 'apiserver_request_duration_seconds',
    help: 'Response latency in seconds for each verb, group, version, resource and subresource.',
    labels: ['verb', 'group', 'version', 'resource', 'subresource', 'code'],
    bounds: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30],
  })
  const running = registry.gauge<'verb' | 'group' | 'version' | 'resource'>({
    name: 'apiserver_longrunning_requests',
    help: 'Gauge of all active long-running apiserver requests broken out by verb, group, version and resource.',
    labels: ['verb', 'group', 'version', 'resource'],
  })
  const stored = registry.gauge<'resource'>({
    name: 'apiserver_storage_objects',
    help: 'Number of stored objects by resource.',
    labels: ['resource'],
  })
  registry.beforeCollect(() => {
    for (const resource of store.resources) {
      const [group, plural] = resource.split('/')
      stored.with({ resource: group === '' ? (plural ?? '') : `${plural}.${group}` }).set(store.count(resource))
    }
  })
  return {
    observe(verb, target, code, milliseconds) {
      // Watches last as long as their clients like: their length says nothing about the server.
      if (target.kind === 'path' || verb === 'watch') return
      const { group, version, plural: resource, subresource = '' } = target
      const labels = { verb: verb.toUpperCase(), group, version, resource, subresource, code: String(code) }
      durations.with(labels).observe(milliseconds / 1000)
    },
    watchStarted(target) {
      if (target.kind === 'path') return () => undefined
      const { group, version, plural: resource } = target
      const series = running.with({ verb: 'WATCH', group, version, resource })
      series.inc()
      return () => series.dec()
    },
    text: async () => renderMetrics(registry, 'text'),
  }
}
