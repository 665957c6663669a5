// The endpoints written into a ServiceEntry, or implied by its hosts, as workloads.
import type { ServiceEntry, WorkloadEntrySpec } from '../../../api/index.ts'
import { workload } from '../../../proto/index.ts'
import { resolutionOf } from '../services/service-entry.ts'
import { canonicalName, canonicalRevision } from './names.ts'
import { localityOfText, tunnelOf, type WorkloadSurroundings, workloadMessage } from './workload.ts'
import { capacityOf, placeOf } from './workload-entry.ts'

export interface ServiceEntryEndpoint {
  readonly endpoint: WorkloadEntrySpec
  /** The host that implies the endpoint; absent for one that is written down. */
  readonly impliedBy?: string
}

/** The endpoints of an entry, each address once; `hosts` are those of its hosts that are served. */
export function endpointsOf(entry: ServiceEntry, hosts: readonly string[]): ServiceEntryEndpoint[] {
  if (hosts.length === 0) return []
  const written = entry.spec?.endpoints ?? []
  if (written.length > 0) {
    const byAddress = new Map<string, ServiceEntryEndpoint>()
    for (const endpoint of written) {
      if (!byAddress.has(endpoint.address ?? '')) byAddress.set(endpoint.address ?? '', { endpoint })
    }
    return [...byAddress.values()]
  }
  if (entry.spec?.workloadSelector !== undefined) return []
  if (!['DNS', 'DNS_ROUND_ROBIN', 'DYNAMIC_DNS'].includes(resolutionOf(entry))) return []
  return hosts.map((host) => ({ endpoint: { address: host }, impliedBy: host }))
}

/** Undefined where the address is a Unix socket: no node proxy can reach it. */
export function endpointWorkload(
  cluster: string,
  { metadata }: ServiceEntry,
  endpoint: WorkloadEntrySpec,
  surroundings: WorkloadSurroundings,
): workload.Workload | undefined {
  const place = placeOf(endpoint.address)
  if (place === undefined) return undefined
  const namespace = metadata.namespace ?? ''
  return workloadMessage(
    {
      uid: `${cluster}/networking.istio.io/ServiceEntry/${namespace}/${metadata.name}/${endpoint.address ?? ''}`,
      name: metadata.name,
      namespace,
      ...place,
      ...tunnelOf(metadata),
      serviceAccount: endpoint.serviceAccount ?? '',
      canonicalName: canonicalName(metadata.labels ?? {}, metadata.name),
      canonicalRevision: canonicalRevision(metadata.labels ?? {}),
      workloadType: workload.WorkloadType.POD,
      workloadName: metadata.name,
      clusterId: cluster,
      ...localityOfText(endpoint.locality),
      ...capacityOf(endpoint.weight),
    },
    surroundings,
  )
}
