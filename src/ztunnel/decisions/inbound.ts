// What happens to an inbound connection: is it meant for this workload, where is the application, whom do logs name.
import type { Service, SocketAddress, Workload } from '../model.ts'
import { ipFamily } from '../state/address.ts'
import type { MeshView } from '../state/view.ts'
import { type Authority, parseAuthority } from './authority.ts'
import { parseBaggage } from './baggage.ts'
import { lookUpGateway } from './gateways.ts'
import { parseForwardedHost } from './headers.ts'
import { spiffeId } from './identity.ts'
import type { InboundDecision, InboundOptions, InboundRequest, PlaintextDecision, PlaintextRequest } from './types.ts'

const recursive = 'attempted recursive call to ourselves'

type Rejection = Extract<InboundDecision, { kind: 'reject' }>

/** What a request asks for, as far as that can be told before it is known who is asked. */
export function readConnect(request: Pick<InboundRequest, 'method' | 'authority'>): Authority | Rejection {
  if (request.method !== 'CONNECT') return reject(400, `expected method CONNECT, got ${request.method}`)
  return parseAuthority(request.authority) ?? reject(400, `no valid authority pseudo header: ${request.authority}`)
}

/** Decides for one CONNECT. Policies come after, with `upstream` as destination. Never throws. */
export function decideInbound(view: MeshView, request: InboundRequest, options: InboundOptions): InboundDecision {
  const { local, connectionTo, from } = request
  const authority = readConnect(request)
  if (authority.kind === 'reject') return authority
  if (authority.kind === 'address' && !isAddressedTo(view, local, connectionTo.ip, authority.address.ip)) {
    return reject(400, `ip mismatch: ${connectionTo.ip} != ${authority.address.ip}`)
  }
  const hop = resolveHop(view, local, authority)
  if ('error' in hop) return reject(503, hop.error)
  if (options.illegalPorts.has(hop.port)) return reject(503, recursive)

  const tunnel = local.applicationTunnel
  const upstream: SocketAddress = { ip: connectionTo.ip, port: tunnel?.port ?? hop.port }
  if (options.illegalPorts.has(upstream.port)) return reject(503, recursive)
  const proxied = tunnel?.protocol === 'PROXY'
  const destination = proxied ? announcedDestination(local, authority, hop) : undefined
  if (proxied && destination === undefined) {
    const host = authority.kind === 'hostname' ? authority.hostname : authority.address.ip
    return reject(503, `requested service ${host} found, but has no IP addresses`)
  }
  const onLoopback = proxied && options.localhostAppTunnel
  const forwardedNetwork = request.headers['x-forwarded-network']
  const fromGateway = forwardedNetwork !== undefined && forwardedNetwork.toLowerCase() !== options.network.toLowerCase()
  const sourceWorkload = fromGateway ? undefined : view.workloadByAddress(local.network, from.ip)
  const forwardedHost = parseForwardedHost(request.headers.forwarded)
  const service =
    hop.service ?? guessService(view, local, hop.port, authority.kind === 'address' ? forwardedHost : undefined)
  const baggage = options.readBaggage ? request.headers.baggage : undefined
  return {
    kind: 'connect',
    upstream,
    connectTo: onLoopback ? { ip: ipFamily(upstream.ip) === 4 ? '127.0.0.1' : '::1', port: upstream.port } : upstream,
    ...(destination === undefined
      ? {}
      : {
          proxyProtocol: {
            destination,
            ...(request.peerIdentity === undefined ? {} : { peerIdentity: spiffeId(request.peerIdentity) }),
          },
        }),
    preserveSource: !onLoopback && upstream.ip !== from.ip,
    ...(sourceWorkload === undefined ? {} : { sourceWorkload }),
    ...(service === undefined ? {} : { service }),
    fromGateway,
    ...(baggage === undefined ? {} : { baggage: parseBaggage([baggage]) }),
    reason: hop.reason,
  }
}

/** Decides for one captured plaintext connection. Policies come after, without an identity. */
export function decidePlaintext(
  view: MeshView,
  request: PlaintextRequest,
  options: Pick<InboundOptions, 'illegalPorts'>,
): PlaintextDecision {
  const { local, from, to } = request
  if (options.illegalPorts.has(to.port)) return { kind: 'reject', error: recursive }
  const sourceWorkload = view.workloadByAddress(local.network, from.ip)
  const service = guessService(view, local, to.port, undefined)
  return {
    kind: 'connect',
    upstream: to,
    preserveSource: to.ip !== from.ip,
    ...(sourceWorkload === undefined ? {} : { sourceWorkload }),
    ...(service === undefined ? {} : { service }),
    reason: 'plaintext to the workload itself',
  }
}

/**
 * Whether a CONNECT for `authorityIp` may arrive on a connection to `connectionIp`: the same address, any address for a workload
 * with an application tunnel, or an address whose waypoint the local workload is.
 */
function isAddressedTo(view: MeshView, local: Workload, connectionIp: string, authorityIp: string): boolean {
  if (connectionIp === authorityIp || local.applicationTunnel !== undefined) return true
  const workload = view.workloadByAddress(local.network, authorityIp)
  const service = view.serviceByVip(local.network, authorityIp)
  const waypoints = [
    workload?.waypoint,
    service?.waypoint,
    ...(service?.weightedWaypoints ?? []).map((one) => (one.weight > 0 ? one.destination : undefined)),
  ]
  return waypoints.some((waypoint) => {
    const gateway = waypoint === undefined ? undefined : lookUpGateway(view, waypoint)
    if (gateway?.service !== undefined) return view.endpoint(gateway.service, local.uid) !== undefined
    return gateway?.workload?.network === local.network && gateway.workload.addresses.includes(connectionIp)
  })
}

interface Hop {
  /** The application's port before an application tunnel replaces it. */
  readonly port: number
  readonly service?: Service
  readonly workload?: Workload
  readonly reason: string
}

function resolveHop(view: MeshView, local: Workload, authority: Authority): Hop | { readonly error: string } {
  if (authority.kind === 'address') return { port: authority.address.port, reason: 'addressed by IP' }
  const { hostname, port } = authority
  const service = view.serviceByHostname(hostname, local.namespace)
  if (service === undefined) {
    const workload = view.workloadByHostname(local.namespace, hostname)
    if (workload === undefined) return { error: `no service or workload for hostname: ${hostname}` }
    return { port, workload, reason: `addressed by the host name of workload ${workload.uid}` }
  }
  const targetPort = view.endpoint(service, local.uid)?.ports.get(port) ?? service.ports.get(port)
  if (targetPort === undefined || targetPort === 0) {
    return { error: `requested service ${hostname}:${port} found, but cannot resolve port` }
  }
  return { port: targetPort, service, reason: `addressed by the host name of service ${hostname}` }
}

/** The destination a PROXY protocol header carries; a host name stands for an address of its service or workload. */
function announcedDestination(local: Workload, authority: Authority, hop: Hop): SocketAddress | undefined {
  if (authority.kind === 'address') return authority.address
  const preferred = (hop.service?.vips ?? []).filter((vip) => vip.network === local.network).map((vip) => vip.ip)
  const others = (hop.service?.vips ?? []).filter((vip) => vip.network !== local.network).map((vip) => vip.ip)
  const ip = firstByFamily(preferred) ?? firstByFamily(others) ?? firstByFamily(hop.workload?.addresses ?? [])
  return ip === undefined ? undefined : { ip, port: authority.port }
}

const firstByFamily = (ips: readonly string[]): string | undefined => ips.find((ip) => ipFamily(ip) === 4) ?? ips[0]

/** The service a connection to a local port was probably meant for: the one the peer names, else the first with that target port. */
function guessService(
  view: MeshView,
  local: Workload,
  port: number,
  forwardedHost: string | undefined,
): Service | undefined {
  let byPort: Service | undefined
  for (const [key, ports] of local.services) {
    const service = view.service(key)
    if (service === undefined) continue
    if (forwardedHost !== undefined && service.hostname === forwardedHost) return service
    if (byPort === undefined && (hasTarget(service.ports, port) || hasTarget(ports, port))) byPort = service
  }
  return byPort
}

function hasTarget(ports: ReadonlyMap<number, number>, target: number): boolean {
  for (const port of ports.values()) if (port === target) return true
  return false
}

const reject = (status: 400 | 503, error: string): Rejection => ({ kind: 'reject', status, error })
