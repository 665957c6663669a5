// Gateways into networks that are Services: labelled with their network, or named in mesh networks.
import { parseIp } from './addresses.ts'
import type { InCluster, Service } from './inputs.ts'
import type { WrittenGateway } from './network-plan.ts'
import { type NetworkGateway, networkLabel } from './networks.ts'
import { waypointPort } from './waypoints/waypoint.ts'

/** A gateway that is written in mesh networks and that node proxies cannot use. */
export interface UnusedGateway {
  readonly network: string
  readonly gateway: string
  readonly reason: string
}

/** The network a Service says to be a gateway into; those that belong to a Gateway are left to it. */
export function networkOfGatewayService({ object: { metadata } }: InCluster<Service>): string | undefined {
  const labels = metadata.labels ?? {}
  if (labels['gateway.networking.k8s.io/gateway-name'] !== undefined) return undefined
  return labels[networkLabel] || undefined
}

/** Addresses and host names under which a Service is reached from outside of its cluster. */
export function externalPlaces({ object }: InCluster<Service>): string[] {
  const ingress = object.status?.loadBalancer?.ingress ?? []
  const places = [...ingress.map(({ ip, hostname }) => ip || hostname || ''), ...(object.spec?.externalIPs ?? [])]
  return [...new Set(places.filter((place) => place !== ''))]
}

/** Whether the Service has the port on which gateways take tunnels. */
export function takesTunnels({ object }: InCluster<Service>): boolean {
  return (object.spec?.ports ?? []).some(({ port }) => port === waypointPort)
}

/** One gateway a place. `serviceAccount` is that of the pods behind the Service: clients accept nobody else. */
export function gatewaysOfService(
  service: InCluster<Service>,
  network: string,
  serviceAccount: string,
  places: readonly string[] = externalPlaces(service),
): NetworkGateway[] {
  const { metadata } = service.object
  return places.map((text) => {
    const address = parseIp(text)
    return {
      source: 'Service',
      cluster: service.cluster,
      namespace: metadata.namespace ?? '',
      name: metadata.name,
      network,
      place: address === undefined ? { hostname: text } : { address },
      hbonePort: waypointPort,
      serviceAccount,
    }
  })
}

/** Name and namespace in the host name of a Service of this domain. */
export function serviceOfHostname(
  hostname: string,
  domainSuffix: string,
): { readonly name: string; readonly namespace: string } | undefined {
  const end = `.svc.${domainSuffix}`
  if (!hostname.endsWith(end)) return undefined
  const [name = '', namespace = '', ...rest] = hostname.slice(0, -end.length).split('.')
  return name === '' || namespace === '' || rest.length > 0 ? undefined : { name, namespace }
}

export function writtenText({ registryServiceName, address, port }: WrittenGateway): string {
  return `${registryServiceName ?? address ?? ''}:${port ?? ''}`
}
