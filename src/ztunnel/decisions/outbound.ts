// Where a captured outbound connection goes: passed through, to a backend, to a waypoint, or through another network's gateway.
import type { Service, SocketAddress, Workload } from '../model.ts'
import { formatAddress, isLoopback } from '../state/address.ts'
import type { MeshView } from '../state/view.ts'
import { chooseBackend, targetOf } from './backends.ts'
import { lookUpGateway, type ResolvedGateway, resolveGateway, waypointOf } from './gateways.ts'
import { identityOf, parseSpiffeId, sameIdentity, spiffeId } from './identity.ts'
import type { OutboundDecision, OutboundOptions, OutboundRequest, Target } from './types.ts'

/** Decides for one connection. Never throws; an unreachable or doubtful destination is refused, never downgraded. */
export function routeOutbound(view: MeshView, request: OutboundRequest, options: OutboundOptions): OutboundDecision {
  const { source, to } = request
  if (isLoopback(to.ip) && options.illegalPorts.has(to.port)) return refuse('attempted recursive call to ourselves')
  const service = view.serviceByVip(source.network, to.ip, source.namespace)
  if (service !== undefined) return routeToService(view, request, options, service)
  const workload = view.workloadByAddress(source.network, to.ip)
  if (workload === undefined) return passThrough(to, 'no service or workload has the address: passed through')
  return routeToWorkload(view, request, options, workload)
}

function routeToService(
  view: MeshView,
  request: OutboundRequest,
  options: OutboundOptions,
  service: Service,
): OutboundDecision {
  const { source, to } = request
  const waypoint = waypointOf(service, options.random)
  if (waypoint !== undefined) {
    const resolved = resolveGateway(view, { gateway: waypoint, role: 'waypoint', source, to, random: options.random })
    if ('error' in resolved) return refuse(resolved.error)
    if (resolved.workload.network !== source.network) {
      return throughOtherNetwork(view, request, options, service, resolved.workload, resolved.service)
    }
    return toWaypoint(to, resolved, service, `service ${service.hostname} has a waypoint`)
  }
  if (service.loadBalancer?.mode === 'Passthrough') {
    return passThrough(to, `service ${service.hostname} passes its addresses through`)
  }
  const backend = chooseBackend(view, { source, service, port: to.port, rules: 'standard' }, options.random)
  if (backend === undefined) return refuse(`no healthy upstream: ${formatAddress(to)}`)
  if (backend.workload.network !== source.network) {
    return throughOtherNetwork(view, request, options, service, backend.workload, service)
  }
  return direct(request, options, backend.workload, backend.port, service)
}

function routeToWorkload(
  view: MeshView,
  request: OutboundRequest,
  options: OutboundOptions,
  workload: Workload,
): OutboundDecision {
  const { source, to } = request
  if (workload.network !== source.network) return refuse(`no service for target address: ${formatAddress(to)}`)
  if (workload.waypoint !== undefined && !isOwnWaypoint(view, request, workload)) {
    const query = { gateway: workload.waypoint, role: 'waypoint' as const, source, to, random: options.random }
    const resolved = resolveGateway(view, query)
    if ('error' in resolved) return refuse(resolved.error)
    if (resolved.workload.network !== source.network) {
      return refuse(`no service for target address: ${formatAddress(to)}`)
    }
    return toWaypoint(to, resolved, undefined, `workload ${workload.uid} has a waypoint`)
  }
  return direct(request, options, workload, to.port, undefined)
}

function direct(
  request: OutboundRequest,
  options: OutboundOptions,
  workload: Workload,
  port: number,
  service: Service | undefined,
): OutboundDecision {
  const hbone = workload.protocol === 'HBONE'
  const target = targetOf(workload, hbone ? options.hbonePort : port, service, request.to.ip)
  if (target === undefined) return refuse(noDestination(workload))
  const attribution = { destinationWorkload: workload, ...(service === undefined ? {} : { service }) }
  const way = service === undefined ? 'its address' : `service ${service.hostname}`
  if (!hbone) return { kind: 'tcp', target, ...attribution, reason: `${workload.uid} by ${way}, outside the mesh: TCP` }
  return {
    kind: 'hbone',
    target,
    ...authorityOf(target, port),
    expectedIdentities: [...serviceIdentities(service), spiffeId(identityOf(workload))],
    ...attribution,
    reason: `${workload.uid} by ${way}: HBONE`,
  }
}

function toWaypoint(
  to: SocketAddress,
  waypoint: ResolvedGateway,
  service: Service | undefined,
  reason: string,
): OutboundDecision {
  if (waypoint.target === undefined) return refuse(noDestination(waypoint.workload))
  return {
    kind: 'hbone',
    target: waypoint.target,
    authority: formatAddress(to),
    expectedIdentities: [...serviceIdentities(waypoint.service), spiffeId(identityOf(waypoint.workload))],
    destinationWorkload: waypoint.workload,
    ...(service === undefined ? {} : { service }),
    reason: `${reason}: ${waypoint.workload.uid}`,
  }
}

function throughOtherNetwork(
  view: MeshView,
  request: OutboundRequest,
  options: OutboundOptions,
  service: Service,
  upstream: Workload,
  verifiedService: Service | undefined,
): OutboundDecision {
  const { source, to } = request
  if (upstream.networkGateway === undefined) return refuse(noDestination(upstream))
  const query = { gateway: upstream.networkGateway, role: 'network gateway' as const, source, to }
  const gateway = resolveGateway(view, { ...query, random: options.random })
  if ('error' in gateway) return refuse(gateway.error)
  if (gateway.target === undefined) return refuse(noDestination(gateway.workload))
  return {
    kind: 'double-hbone',
    target: gateway.target,
    authority: `${service.hostname}:${to.port}`,
    expectedIdentities: [...serviceIdentities(gateway.service), spiffeId(identityOf(gateway.workload))],
    finalIdentities: serviceIdentities(verifiedService),
    destinationWorkload: gateway.workload,
    service,
    reason: `${upstream.uid} is on network ${upstream.network}: through gateway ${gateway.workload.uid}`,
  }
}

/** True when the client is itself a workload behind the waypoint of the target; it then goes straight to the target. */
function isOwnWaypoint(view: MeshView, request: OutboundRequest, workload: Workload): boolean {
  const gateway = workload.waypoint === undefined ? undefined : lookUpGateway(view, workload.waypoint)
  if (gateway === undefined) return false
  const behind = gateway.service === undefined ? [] : [...view.endpoints(gateway.service)].map((one) => one.workload)
  if (gateway.workload !== undefined) behind.push(gateway.workload)
  return behind.some(
    (one) => sameIdentity(identityOf(one), identityOf(request.source)) && one.addresses.includes(request.from.ip),
  )
}

function serviceIdentities(service: Service | undefined): readonly string[] {
  return (service?.subjectAltNames ?? []).filter((name) => parseSpiffeId(name) !== undefined)
}

function authorityOf(target: Target, port: number): { readonly authority: string; readonly authorityPort?: number } {
  if (target.kind === 'address') return { authority: formatAddress({ ip: target.address.ip, port }) }
  return { authority: `${target.workload.hostname}:${port}`, authorityPort: port }
}

const passThrough = (to: SocketAddress, reason: string): OutboundDecision => ({
  kind: 'tcp',
  target: { kind: 'address', address: to },
  reason,
})

const refuse = (error: string): OutboundDecision => ({ kind: 'refuse', error })

const noDestination = (workload: Workload): string => `no valid routing destination for workload: ${workload.uid}`
