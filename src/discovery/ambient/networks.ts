// Networks and the gateways into them.
import { create } from '@bufbuild/protobuf'
import type { Gateway } from '../../api/index.ts'
import { workload } from '../../proto/index.ts'
import { ipText, parseIp } from './addresses.ts'
import type { InCluster } from './inputs.ts'
import { compareText, type GatewayAddressInit } from './model.ts'
import { waypointPort } from './waypoints/waypoint.ts'

export const networkLabel = 'topology.istio.io/network'

export interface NetworkGateway {
  /** Which kind of object says it. */
  readonly source: 'Gateway' | 'Service'
  readonly cluster: string
  readonly namespace: string
  readonly name: string
  readonly network: string
  readonly place: { readonly address: Uint8Array } | { readonly hostname: string }
  /** 0 for a gateway of another cluster: its port is not configured here. */
  readonly hbonePort: number
  readonly serviceAccount: string
}

/** The gateways into a network that a Gateway is: one an address. */
export function networkGateways({ cluster, object }: InCluster<Gateway>, configCluster: string): NetworkGateway[] {
  const { metadata, spec, status } = object
  const network = metadata.labels?.[networkLabel]
  const remote = cluster !== configCluster
  if (network === undefined || spec?.gatewayClassName !== (remote ? 'istio-east-west' : 'istio-remote')) return []
  const listener = spec.listeners?.find(
    ({ protocol, tls }) => protocol === 'HBONE' && (!remote || tls?.mode === 'Terminate'),
  )
  if (listener === undefined) return []
  const defaultAccount = remote ? metadata.name : `${metadata.name}-istio-remote`
  return (status?.addresses ?? []).flatMap(({ type, value }) => {
    const address = type === undefined || type === 'IPAddress' ? parseIp(value) : undefined
    if (address === undefined && type !== 'Hostname') return []
    return [
      {
        source: 'Gateway',
        cluster,
        namespace: metadata.namespace ?? '',
        name: metadata.name,
        network,
        place: address === undefined ? { hostname: value } : { address },
        hbonePort: remote ? 0 : listener.port,
        serviceAccount: metadata.annotations?.['gateway.istio.io/service-account'] ?? defaultAccount,
      },
    ]
  })
}

/** The gateway's address or host as text. */
export function placeText({ place }: NetworkGateway): string {
  return 'address' in place ? ipText(place.address) : place.hostname
}

/** Orders gateways alike on every replica: what is declared as a Gateway before what is known of a Service. */
export function compareGateways(a: NetworkGateway, b: NetworkGateway): number {
  return (
    compareText(a.source, b.source) ||
    compareText(`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`) ||
    compareText(placeText(a), placeText(b)) ||
    compareText(a.cluster, b.cluster)
  )
}

export function gatewayAddress({ namespace, network, place, hbonePort }: NetworkGateway): GatewayAddressInit {
  return {
    destination:
      'address' in place
        ? { case: 'address', value: { network, address: place.address } }
        : { case: 'hostname', value: { namespace, hostname: place.hostname } },
    hboneMtlsPort: hbonePort === 0 ? waypointPort : hbonePort,
  }
}

export function gatewayUid(gateway: NetworkGateway): string {
  return `NetworkGateway/${gateway.network}/${placeText(gateway)}/${gateway.hbonePort}`
}

export function gatewayWorkload(gateway: NetworkGateway, trustDomain: string): workload.Workload {
  const uid = gatewayUid(gateway)
  return create(workload.WorkloadSchema, {
    uid,
    name: uid,
    namespace: gateway.namespace,
    ...('address' in gateway.place ? { addresses: [gateway.place.address] } : gateway.place),
    network: gateway.network,
    trustDomain,
    serviceAccount: gateway.serviceAccount,
  })
}
