// Choosing one backend of a service: which endpoints are candidates, which of them are nearest, and a weighted draw.
import type { Endpoint, Scope, Service, Workload } from '../model.ts'
import { ipFamily } from '../state/address.ts'
import { type MeshView, usableEndpoints } from '../state/view.ts'
import type { Target } from './types.ts'

/** `waypoint`: a sandwiched waypoint takes any port through its application tunnel. */
export type PortRules = 'standard' | 'waypoint'

export interface BackendQuery {
  readonly source: Pick<Workload, 'network' | 'locality' | 'node' | 'clusterId'>
  readonly service: Service
  /** The service port. */
  readonly port: number
  readonly rules: PortRules
}

export interface Backend {
  readonly workload: Workload
  /** The target port. */
  readonly port: number
}

/** A backend drawn by capacity among the eligible ones, or undefined when there is none. */
export function chooseBackend(view: MeshView, query: BackendQuery, random: () => number): Backend | undefined {
  const { backends, upTo } = candidates(view, query)
  const total = upTo[upTo.length - 1] ?? 0
  const drawn = random() * total
  let low = 0
  let high = backends.length - 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((upTo[middle] ?? 0) > drawn) high = middle
    else low = middle + 1
  }
  return backends[low]
}

/** The backends that may be chosen: reachable, with a target port, and nearest by the service's load balancing mode. */
export function eligibleBackends(view: MeshView, query: BackendQuery): readonly Backend[] {
  return candidates(view, query).backends
}

interface Candidates {
  readonly backends: readonly Backend[]
  /** The capacities of all backends up to each. */
  readonly upTo: Float64Array
}

/** Worked out once for all clients at the same place, until an endpoint or the service changes. */
function candidates(view: MeshView, query: BackendQuery): Candidates {
  const { service } = query
  return view.endpoints(service).remember(service, keyOf(query), () => {
    const backends = findBackends(view, query)
    const upTo = new Float64Array(backends.length)
    let sum = 0
    for (const [index, { workload }] of backends.entries()) {
      sum += workload.capacity
      upTo[index] = sum
    }
    return { backends, upTo }
  })
}

/** Of all that the choice depends on besides the service. Names may contain anything, so each comes with its length. */
function keyOf({ source, service, port, rules }: BackendQuery): string {
  if (!isRanked(service)) return `${rules} ${port} ${source.network}`
  const { network, locality, node, clusterId } = source
  const lengths = [network, locality.region, locality.zone, locality.subzone, node].map((one) => one.length)
  return `${rules} ${port} ${lengths} ${network}${locality.region}${locality.zone}${locality.subzone}${node}${clusterId}`
}

const isRanked = ({ loadBalancer }: Service): boolean =>
  loadBalancer?.mode === 'Strict' || loadBalancer?.mode === 'Failover'

function findBackends(view: MeshView, query: BackendQuery): readonly Backend[] {
  const { service, source } = query
  if (query.rules === 'standard' && !service.ports.has(query.port)) return []
  const mode = service.loadBalancer?.mode ?? 'Standard'
  const preferences = service.loadBalancer?.routingPreferences ?? []
  const ranked = isRanked(service)
  let best = 0
  let chosen: Backend[] = []
  for (const endpoint of usableEndpoints(view, service)) {
    if (!isReachable(source.network, endpoint.workload)) continue
    const port = targetPort(query, endpoint)
    if (port === undefined || endpoint.workload.capacity === 0) continue
    if (ranked) {
      const nearness = rank(source, endpoint.workload, preferences)
      if (mode === 'Strict' && !nearness.all) continue
      if (mode === 'Failover' && nearness.score < best) continue
      if (mode === 'Failover' && nearness.score > best) {
        best = nearness.score
        chosen = []
      }
    }
    chosen.push({ workload: endpoint.workload, port })
  }
  return chosen
}

/** One of the items, with the probability of its weight; weight 0 never. */
export function draw<T>(items: readonly T[], weight: (item: T) => number, random: () => number): T | undefined {
  let total = 0
  for (const item of items) total += weight(item)
  if (total <= 0) return undefined
  let rest = random() * total
  let last: T | undefined
  for (const item of items) {
    if (weight(item) <= 0) continue
    last = item
    rest -= weight(item)
    if (rest < 0) return item
  }
  return last
}

/**
 * The address to reach a workload at: the one the client asked for if it is the workload's own, else one of the families the
 * service allows, preferably of the client's; a host name to resolve when there is no address at all.
 */
export function targetOf(
  workload: Workload,
  port: number,
  service: Service | undefined,
  wanted: string,
): Target | undefined {
  const at = (ip: string): Target => ({ kind: 'address', address: { ip, port } })
  if (workload.addresses.includes(wanted)) return at(wanted)
  const family = ipFamily(wanted)
  if (workload.addresses.length === 0) {
    return workload.hostname === '' ? undefined : { kind: 'hostname', workload, port, family }
  }
  const allowed = workload.addresses.filter((ip) => allowsFamily(service, ipFamily(ip)))
  const ip = allowed.find((one) => ipFamily(one) === family) ?? allowed[0]
  return ip === undefined ? undefined : at(ip)
}

export function allowsFamily(service: Service | undefined, family: 4 | 6): boolean {
  const families = service?.ipFamilies
  return families === undefined || families === 'Dual' || families === (family === 4 ? 'IPv4' : 'IPv6')
}

function isReachable(network: string, workload: Workload): boolean {
  if (workload.addresses.length > 0 || workload.hostname !== '') return true
  return workload.network !== network && workload.networkGateway !== undefined
}

function targetPort(query: BackendQuery, endpoint: Endpoint): number | undefined {
  const tunnel = endpoint.workload.applicationTunnel
  const ofService = query.service.ports.get(query.port)
  if (ofService === undefined && tunnel === undefined) return undefined
  const own = endpoint.ports.get(query.port)
  if (own !== undefined && own > 0) return own
  if (ofService !== undefined && ofService > 0) return ofService
  return query.rules === 'waypoint' && tunnel?.port !== undefined ? query.port : undefined
}

function rank(
  source: BackendQuery['source'],
  workload: Workload,
  preferences: readonly Scope[],
): { readonly score: number; readonly all: boolean } {
  const networkFirst = preferences[0] === 'Network'
  let score = 0
  let all = true
  for (const scope of preferences) {
    if (placeOf(source, scope) === placeOf(workload, scope)) {
      score += networkFirst && scope === 'Network' ? preferences.length : 1
      continue
    }
    all = false
    if (!(networkFirst && scope === 'Network')) break
  }
  return { score, all }
}

function placeOf(workload: BackendQuery['source'], scope: Scope): string {
  switch (scope) {
    case 'Region':
      return workload.locality.region
    case 'Zone':
      return workload.locality.zone
    case 'Subzone':
      return workload.locality.subzone
    case 'Node':
      return workload.node
    case 'Cluster':
      return workload.clusterId
    case 'Network':
      return workload.network
  }
}
