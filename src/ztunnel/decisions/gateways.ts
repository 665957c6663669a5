// Finding the workload behind a waypoint or network gateway. Failing to find one is an error: a configured waypoint is never bypassed.
import type { GatewayAddress, Service, SocketAddress, Workload } from '../model.ts'
import { formatAddress } from '../state/address.ts'
import type { MeshView } from '../state/view.ts'
import { chooseBackend, draw, type PortRules, targetOf } from './backends.ts'
import type { Target } from './types.ts'

export interface ResolvedGateway {
  readonly workload: Workload
  /** The service it was found through, where there is one. */
  readonly service?: Service
  /** Undefined when the workload can only be reached through its network's gateway. */
  readonly target?: Target
}

export interface GatewayQuery {
  readonly gateway: GatewayAddress
  readonly role: 'waypoint' | 'network gateway'
  readonly source: Workload
  /** The client's original destination. */
  readonly to: SocketAddress
  readonly random: () => number
}

/** The gateway's workload and address, or the error that says why there is none. */
export function resolveGateway(view: MeshView, query: GatewayQuery): ResolvedGateway | { readonly error: string } {
  const { gateway, role } = query
  const rules: PortRules = role === 'waypoint' ? 'waypoint' : 'standard'
  const unknown = { error: `unknown ${role}: ${role} ${printGateway(gateway)} not found` }
  const port = gateway.hbonePort
  const wanted = gateway.destination.kind === 'address' ? gateway.destination.address.ip : query.to.ip
  const found = lookUpGateway(view, gateway)
  if (found?.service !== undefined) {
    const backend = chooseBackend(view, { source: query.source, service: found.service, port, rules }, query.random)
    if (backend === undefined) return unknown
    const target = targetOf(backend.workload, backend.port, found.service, wanted)
    return { workload: backend.workload, service: found.service, ...(target === undefined ? {} : { target }) }
  }
  if (found?.workload === undefined) return unknown
  const target = targetOf(found.workload, port, undefined, wanted)
  return { workload: found.workload, ...(target === undefined ? {} : { target }) }
}

/** The service or workload an address names: by host name, or by address with services first. */
export function lookUpGateway(
  view: MeshView,
  gateway: GatewayAddress,
): { readonly service?: Service; readonly workload?: Workload } | undefined {
  if (gateway.destination.kind === 'hostname') {
    const { namespace, hostname } = gateway.destination.hostname
    const service = view.service(`${namespace}/${hostname}`)
    if (service !== undefined) return { service }
    const workload = view.workloadByHostname(namespace, hostname)
    return workload === undefined ? undefined : { workload }
  }
  const { network, ip } = gateway.destination.address
  const service = view.serviceByVip(network, ip)
  if (service !== undefined) return { service }
  const workload = view.workloadByAddress(network, ip)
  return workload === undefined ? undefined : { workload }
}

/** The waypoint a connection to the service takes: drawn from the weighted set where that has weights, else the single one. */
export function waypointOf(service: Service, random: () => number): GatewayAddress | undefined {
  return draw(service.weightedWaypoints, (one) => one.weight, random)?.destination ?? service.waypoint
}

/** `<network>/<IP>` or `<namespace>/<hostname>`. */
export function gatewayDestination(gateway: GatewayAddress): string {
  const { destination } = gateway
  return destination.kind === 'address'
    ? `${destination.address.network}/${destination.address.ip}`
    : `${destination.hostname.namespace}/${destination.hostname.hostname}`
}

function printGateway(gateway: GatewayAddress): string {
  const { destination } = gateway
  return destination.kind === 'address'
    ? formatAddress({ ip: destination.address.ip, port: gateway.hbonePort })
    : destination.hostname.hostname
}
