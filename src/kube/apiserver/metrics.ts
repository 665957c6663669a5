// Prometheus figures of the server.
import { Gauge, Histogram, Registry } from 'prom-client'
import type { RequestTarget } from './path.ts'
import type { Store } from './store/store.ts'

export interface RequestMetrics {
  observe(verb: string, target: RequestTarget, code: number, milliseconds: number): void
  /** Counts a watch as running; returns the function that ends that. */
  watchStarted(target: RequestTarget): () => void
  text(): Promise<string>
}

export function createRequestMetrics(store: Store): RequestMetrics {
  const registry = new Registry()
  const durations = new Histogram({
    name: 'apiserver_request_duration_seconds',
    help: 'Response latency in seconds for each verb, group, version, resource and subresource.',
    labelNames: ['verb', 'group', 'version', 'resource', 'subresource', 'code'],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30],
    registers: [registry],
  })
  const running = new Gauge({
    name: 'apiserver_longrunning_requests',
    help: 'Gauge of all active long-running apiserver requests broken out by verb, group, version and resource.',
    labelNames: ['verb', 'group', 'version', 'resource'],
    registers: [registry],
  })
  new Gauge({
    name: 'apiserver_storage_objects',
    help: 'Number of stored objects by resource.',
    labelNames: ['resource'],
    registers: [registry],
    collect() {
      for (const resource of store.resources) {
        const [group, plural] = resource.split('/')
        this.set({ resource: group === '' ? (plural ?? '') : `${plural}.${group}` }, store.count(resource))
      }
    },
  })
  return {
    observe(verb, target, code, milliseconds) {
      // Watches last as long as their clients like: their length says nothing about the server.
      if (target.kind === 'path' || verb === 'watch') return
      const { group, version, plural: resource, subresource = '' } = target
      durations.observe({ verb: verb.toUpperCase(), group, version, resource, subresource, code }, milliseconds / 1000)
    },
    watchStarted(target) {
      if (target.kind === 'path') return () => undefined
      const { group, version, plural: resource } = target
      const labels = { verb: 'WATCH', group, version, resource }
      running.inc(labels)
      return () => running.dec(labels)
    },
    text: () => registry.metrics(),
  }
}
