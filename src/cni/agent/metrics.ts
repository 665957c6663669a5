// The node agent's metrics.
import { createMetricsRegistry, registerProcessMetrics } from '../../observability/index.ts'

export type AgentMetrics = ReturnType<typeof createAgentMetrics>

export function createAgentMetrics() {
  const registry = createMetricsRegistry()
  registerProcessMetrics(registry)
  return {
    registry,
    installs: registry.counter<'result'>({
      name: 'istio_cni_installs_total',
      help: 'Passes of the CNI plugin installer.',
      labels: ['result'],
    }),
    installReady: registry.gauge({ name: 'istio_cni_install_ready', help: 'Whether the CNI plugin is installed.' }),
    pluginRequests: registry.counter<'response_code'>({
      name: 'istio_cni_plugin_requests_total',
      help: 'Requests of the CNI plugin, by response code.',
      labels: ['response_code'],
    }),
    reconcileEvents: registry.counter<'type'>({
      name: 'nodeagent_reconcile_events_total',
      help: 'Pod events handled.',
      labels: ['type'],
    }),
    proxies: registry.gauge({ name: 'ztunnel_connected', help: 'Connected node proxies.' }),
  }
}
