// A workload in shared memory: what is its own, where it runs, and what it has in common with others of its kind.
import type { TableView } from '../../shared-memory/index.ts'
import type { Locality, Workload } from '../model.ts'
import { createFieldReader, type FieldWriter } from './fields.ts'
import { createRecent } from './recent.ts'
import { loadGateway, type StoredGateway, storeGateway } from './stored-gateway.ts'

type Own = 'uid' | 'name' | 'addresses' | 'hostname' | 'capacity' | 'status' | 'node' | 'locality'
/** Of the pods of a deployment it is the same, and so are the decoded values. */
type Common = Omit<Workload, Own>
type StoredPorts = readonly (readonly [service: string, ports: readonly (readonly [number, number])[]])[]
type StoredCommon = readonly [
  namespace: string,
  network: string,
  networkMode: Workload['networkMode'],
  protocol: Workload['protocol'],
  nativeTunnel: 0 | 1,
  trustDomain: string,
  serviceAccount: string,
  clusterId: string,
  waypoint: StoredGateway,
  networkGateway: StoredGateway,
  applicationTunnel: readonly [protocol: 'NONE' | 'PROXY', port?: number] | 0,
  canonicalName: string,
  canonicalRevision: string,
  workloadName: string,
  workloadType: string,
  authorizationPolicies: readonly string[],
  services: StoredPorts,
]
type StoredPlace = readonly [node: string, region: string, zone: string, subzone: string]

/** What a workload has in common with others of its kind. */
export function commonText(workload: Workload): string {
  const { applicationTunnel: tunnel } = workload
  const common: StoredCommon = [
    workload.namespace,
    workload.network,
    workload.networkMode,
    workload.protocol,
    workload.nativeTunnel ? 1 : 0,
    workload.trustDomain,
    workload.serviceAccount,
    workload.clusterId,
    storeGateway(workload.waypoint),
    storeGateway(workload.networkGateway),
    tunnel === undefined ? 0 : tunnel.port === undefined ? [tunnel.protocol] : [tunnel.protocol, tunnel.port],
    workload.canonicalName,
    workload.canonicalRevision,
    workload.workloadName,
    workload.workloadType,
    workload.authorizationPolicies,
    [...workload.services].map(([key, ports]) => [key, [...ports]] as const),
  ]
  return JSON.stringify(common)
}

/** The key is the uid. `common`: the place of the text above. */
export function storeWorkload(fields: FieldWriter, workload: Workload, common: number): Uint8Array {
  const { locality } = workload
  const place: StoredPlace = [workload.node, locality.region, locality.zone, locality.subzone]
  fields.begin()
  fields.number(common)
  fields.number(workload.capacity)
  fields.number(workload.status === 'Healthy' ? 1 : 0)
  fields.text(workload.name)
  fields.text(workload.hostname)
  fields.number(workload.addresses.length)
  for (const ip of workload.addresses) fields.text(ip)
  fields.text(JSON.stringify(place))
  return fields.finish()
}

/** The place of what a stored workload has in common with others. */
export function commonPlace(view: TableView, leaf: number): number {
  const fields = createFieldReader()
  fields.open(view, leaf)
  return fields.number()
}

/** How many different texts of each kind a thread keeps decoded. */
const mostKept = 2000

/** Decodes workloads; parts that are equal are the same values. */
export function createWorkloadLoader(): (view: TableView, leaf: number) => Workload {
  const fields = createFieldReader()
  const places = createRecent<string, { readonly node: string; readonly locality: Locality }>(mostKept)
  const commons = createRecent<string, Common>(mostKept)

  function placeOf(text: string): { readonly node: string; readonly locality: Locality } {
    const known = places.get(text)
    if (known !== undefined) return known
    const [node, region, zone, subzone] = JSON.parse(text) as StoredPlace
    const place = { node, locality: { region, zone, subzone } }
    places.set(text, place)
    return place
  }

  function commonOf(text: string): Common {
    const known = commons.get(text)
    if (known !== undefined) return known
    const common = loadCommon(JSON.parse(text) as StoredCommon)
    commons.set(text, common)
    return common
  }

  return (view, leaf) => {
    fields.open(view, leaf)
    const common = commonOf(view.keyOf(fields.number()))
    const capacity = fields.number()
    const status = fields.number() === 1 ? 'Healthy' : 'Unhealthy'
    const name = fields.text()
    const hostname = fields.text()
    const addresses: string[] = []
    for (let left = fields.number(); left > 0; left -= 1) addresses.push(fields.text())
    const { node, locality } = placeOf(fields.text())
    return { ...common, uid: view.keyOf(leaf), name, addresses, hostname, capacity, status, node, locality }
  }
}

function loadCommon(stored: StoredCommon): Common {
  const [namespace, network, networkMode, protocol, nativeTunnel, trustDomain, serviceAccount, clusterId] = stored
  const [, , , , , , , , storedWaypoint, storedGateway, tunnel] = stored
  const [, , , , , , , , , , , canonicalName, canonicalRevision, workloadName, workloadType, policies, services] =
    stored
  const waypoint = loadGateway(storedWaypoint)
  const networkGateway = loadGateway(storedGateway)
  return {
    namespace,
    network,
    networkMode,
    protocol,
    nativeTunnel: nativeTunnel === 1,
    trustDomain,
    serviceAccount,
    clusterId,
    ...(waypoint === undefined ? {} : { waypoint }),
    ...(networkGateway === undefined ? {} : { networkGateway }),
    ...(tunnel === 0
      ? {}
      : { applicationTunnel: { protocol: tunnel[0], ...(tunnel[1] === undefined ? {} : { port: tunnel[1] }) } }),
    canonicalName,
    canonicalRevision,
    workloadName,
    workloadType,
    authorizationPolicies: policies,
    services: new Map(services.map(([key, ports]) => [key, new Map(ports)])),
  }
}
