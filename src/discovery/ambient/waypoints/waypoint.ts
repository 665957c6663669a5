// Waypoints: Gateways that have an address, and what they accept.
import type { Gateway, GatewayClass, GatewayListener, LabelSelector } from '../../../api/index.ts'
import { parseIp } from '../addresses.ts'
import type { GatewayAddressInit } from '../model.ts'

export const waypointPort = 15008

export interface InboundBinding {
  readonly protocol: 'NONE' | 'PROXY'
  /** 0: the original port is kept. */
  readonly port: number
}

export interface Waypoint {
  readonly cluster: string
  readonly namespace: string
  readonly name: string
  readonly address: GatewayAddressInit
  readonly trafficType: string
  readonly binding: InboundBinding | undefined
  readonly allowedNamespaces:
    | { readonly kind: 'same' }
    | { readonly kind: 'all' }
    | { readonly kind: 'selected'; readonly selector: LabelSelector }
}

/** The waypoint a Gateway is; undefined while its status has no usable address. */
export function waypointOf(
  cluster: string,
  gateway: Gateway,
  gatewayClass: GatewayClass | undefined,
  network: string,
): Waypoint | undefined {
  const namespace = gateway.metadata.namespace ?? ''
  const address = addressOf(gateway, namespace, network)
  if (address === undefined) return undefined
  const bindingText =
    gateway.metadata.annotations?.['ambient.istio.io/waypoint-inbound-binding'] ??
    gatewayClass?.metadata.annotations?.['ambient.istio.io/waypoint-inbound-binding']
  const binding = bindingText === undefined ? undefined : parseBinding(bindingText)
  return {
    cluster,
    namespace,
    name: gateway.metadata.name,
    address,
    trafficType:
      gateway.metadata.labels?.['istio.io/waypoint-for'] ??
      gatewayClass?.metadata.labels?.['istio.io/waypoint-for'] ??
      'service',
    binding,
    allowedNamespaces: allowedNamespacesOf(gateway, binding),
  }
}

function addressOf(gateway: Gateway, namespace: string, network: string): GatewayAddressInit | undefined {
  const addresses = gateway.status?.addresses ?? []
  const host = addresses.find(({ type }) => type === 'Hostname')
  if (host !== undefined) {
    return {
      destination: { case: 'hostname', value: { namespace, hostname: host.value } },
      hboneMtlsPort: waypointPort,
    }
  }
  for (const { type, value } of addresses) {
    const address = type === undefined || type === 'IPAddress' ? parseIp(value) : undefined
    if (address !== undefined) {
      return { destination: { case: 'address', value: { network, address } }, hboneMtlsPort: waypointPort }
    }
  }
  return undefined
}

function parseBinding(text: string): InboundBinding | undefined {
  const [protocol, portText, ...rest] = text.split('/')
  if ((protocol !== 'NONE' && protocol !== 'PROXY') || rest.length > 0) return undefined
  const port = portText !== undefined && /^\d{1,5}$/.test(portText) ? Number(portText) : 0
  return { protocol, port: port <= 65535 ? port : 0 }
}

function allowedNamespacesOf(gateway: Gateway, binding: InboundBinding | undefined): Waypoint['allowedNamespaces'] {
  const fits = (listener: GatewayListener): boolean => {
    if (binding !== undefined && binding.port !== 0) return listener.port === binding.port
    if (binding?.protocol === 'PROXY') return listener.protocol === 'istio.io/PROXY'
    return listener.protocol === 'HBONE' && listener.port === waypointPort
  }
  const namespaces = gateway.spec?.listeners?.find(fits)?.allowedRoutes?.namespaces
  if (namespaces?.from === 'All') return { kind: 'all' }
  if (namespaces?.from === 'Selector' && namespaces.selector !== undefined) {
    return { kind: 'selected', selector: namespaces.selector }
  }
  return { kind: 'same' }
}
