// What the control plane's clients hold, as its pages and tools tell it.
import type { Connection, Watch } from '../xds/index.ts'

export function clientsOf(connections: readonly Connection[]) {
  return {
    totalClients: connections.length,
    clients: connections.map(({ id, connectedAt, peer, node, watches }) => ({
      connectionId: id,
      connectedAt: connectedAt.toISOString(),
      address: peer,
      labels: node.metadata.LABELS ?? {},
      metadata: node.metadata,
      watches: Object.fromEntries(
        [...watches].map(([type, watch]) => [type, watch.wildcard ? ['*'] : [...watch.names]]),
      ),
    })),
  }
}

/** The sync state of one client, with the fields of the types that older tools know by name. */
export function syncOf({ node, watches }: Connection, { clusterId, version }: { clusterId: string; version: string }) {
  const of = (type: string): Watch | undefined => watches.get(`type.googleapis.com/${type}`)
  const named = Object.entries({
    cluster: of('envoy.config.cluster.v3.Cluster'),
    listener: of('envoy.config.listener.v3.Listener'),
    route: of('envoy.config.route.v3.RouteConfiguration'),
    endpoint: of('envoy.config.endpoint.v3.ClusterLoadAssignment'),
    extensionconfig: of('envoy.config.core.v3.TypedExtensionConfig'),
  }).flatMap(([name, watch]) => [
    [`${name}_sent`, watch?.nonceSent],
    [`${name}_acked`, watch?.nonceAcked],
  ])
  return {
    cluster_id: node.metadata.CLUSTER_ID ?? clusterId,
    proxy: node.proxyId,
    proxy_type: node.type,
    istio_version: node.metadata.ISTIO_VERSION ?? version,
    ...Object.fromEntries(named.filter(([, nonce]) => nonce !== undefined && nonce !== '')),
    resources: Object.fromEntries(
      [...watches].map(([type, { nonceSent, nonceAcked, lastSentAt, lastError }]) => [
        type,
        { sent: nonceSent, acked: nonceAcked, sentTime: lastSentAt?.toISOString(), lastError },
      ]),
    ),
  }
}
