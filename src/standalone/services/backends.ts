// Which addresses stand behind each service port, from Services and EndpointSlices. Pure.
import type { EndpointSlice, Service } from '../node/types.ts'

export type Protocol = 'tcp' | 'udp' | 'sctp'

export interface Backend {
  readonly ip: string
  readonly port: number
}

export interface ServicePort {
  /** `namespace/service:port` */
  readonly name: string
  readonly protocol: Protocol
  readonly port: number
  /** The cluster IP and every other address that leads to the service. */
  readonly ips: readonly string[]
  readonly nodePort?: number
  /** For connections from within the cluster. */
  readonly backends: readonly Backend[]
  /** For connections to the node port and to external addresses; with the policy `Local` those of this node, whose clients keep their address. */
  readonly external: { readonly local: boolean; readonly backends: readonly Backend[] }
  /** Seconds for which a client stays with its backend. */
  readonly affinitySeconds?: number
}

/** The ports that this node has to serve, in a stable order. Addresses are IPv4. */
export function servicePorts(
  services: readonly Service[],
  slices: readonly EndpointSlice[],
  nodeName: string,
): ServicePort[] {
  const byService = Map.groupBy(
    slices.filter((slice) => (slice.addressType ?? 'IPv4') === 'IPv4'),
    (slice) => `${slice.metadata.namespace}/${slice.metadata.labels?.['kubernetes.io/service-name'] ?? ''}`,
  )
  return services
    .flatMap((service) =>
      portsOf(service, byService.get(`${service.metadata.namespace}/${service.metadata.name}`) ?? [], nodeName),
    )
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

function portsOf(service: Service, slices: readonly EndpointSlice[], nodeName: string): ServicePort[] {
  const { spec } = service
  if (spec === undefined || spec.type === 'ExternalName') return []
  const clusterIPs = (spec.clusterIPs ?? [spec.clusterIP ?? '']).filter(isIPv4)
  if (clusterIPs.length === 0) return []
  const ips = [...new Set([...clusterIPs, ...(spec.externalIPs ?? []).filter(isIPv4)])]
  return (spec.ports ?? []).map((port) => {
    const all = backendsOf(slices, port.name ?? '')
    const onNode = backendsOf(slices, port.name ?? '', nodeName)
    const local = spec.externalTrafficPolicy === 'Local'
    const withNodePort = spec.type === 'NodePort' || spec.type === 'LoadBalancer'
    return {
      name: `${service.metadata.namespace}/${service.metadata.name}:${port.name || port.port}`,
      protocol: (port.protocol ?? 'TCP').toLowerCase() as Protocol,
      port: port.port,
      ips,
      ...(withNodePort && port.nodePort && { nodePort: port.nodePort }),
      backends: spec.internalTrafficPolicy === 'Local' ? onNode : all,
      external: { local, backends: local ? onNode : all },
      ...(spec.sessionAffinity === 'ClientIP' && {
        affinitySeconds: spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? 10_800,
      }),
    }
  })
}

/** Ready endpoints; when there are none, those that end but still serve. */
function backendsOf(slices: readonly EndpointSlice[], portName: string, nodeName?: string): Backend[] {
  const ready = new Map<string, Backend>()
  const serving = new Map<string, Backend>()
  for (const slice of slices) {
    const port = slice.ports?.find((candidate) => (candidate.name ?? '') === portName)?.port
    if (port === undefined) continue
    for (const endpoint of slice.endpoints ?? []) {
      if (nodeName !== undefined && endpoint.nodeName !== nodeName) continue
      const { ready: isReady = true, serving: isServing = isReady } = endpoint.conditions ?? {}
      for (const ip of endpoint.addresses) {
        if (isReady) ready.set(`${ip}:${port}`, { ip, port })
        else if (isServing) serving.set(`${ip}:${port}`, { ip, port })
      }
    }
  }
  const chosen = ready.size > 0 ? ready : serving
  return [...chosen.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, backend]) => backend)
}

function isIPv4(ip: string): boolean {
  return /^\d+\.\d+\.\d+\.\d+$/.test(ip)
}
