// WorkloadEntries as workloads.
import type { WorkloadEntry } from '../../../api/index.ts'
import { workload } from '../../../proto/index.ts'
import { parseIp } from '../addresses.ts'
import { canonicalName, canonicalRevision, workloadEntryName } from './names.ts'
import { localityOfText, tunnelOf, type WorkloadSurroundings, workloadMessage } from './workload.ts'

/** The labels of a WorkloadEntry for every purpose: those of its spec, overlaid by those of its metadata. */
export function workloadEntryLabels({ metadata, spec }: WorkloadEntry): Readonly<Record<string, string>> {
  return { ...spec?.labels, ...metadata.labels }
}

/** Undefined where the address is a Unix socket: no node proxy can reach it. */
export function workloadEntryWorkload(
  cluster: string,
  entry: WorkloadEntry,
  surroundings: WorkloadSurroundings,
): workload.Workload | undefined {
  const { metadata, spec } = entry
  const namespace = metadata.namespace ?? ''
  const labels = workloadEntryLabels(entry)
  const workloadName = workloadEntryName(entry, labels)
  const place = placeOf(spec?.address)
  if (place === undefined) return undefined
  return workloadMessage(
    {
      uid: `${cluster}/networking.istio.io/WorkloadEntry/${namespace}/${metadata.name}`,
      name: metadata.name,
      namespace,
      ...place,
      ...tunnelOf({ labels, annotations: metadata.annotations }),
      serviceAccount: spec?.serviceAccount ?? '',
      canonicalName: canonicalName(labels, workloadName),
      canonicalRevision: canonicalRevision(labels),
      workloadType: workload.WorkloadType.POD,
      workloadName,
      status: isHealthy(entry) ? workload.WorkloadStatus.HEALTHY : workload.WorkloadStatus.UNHEALTHY,
      clusterId: cluster,
      ...localityOfText(spec?.locality),
      ...capacityOf(spec?.weight),
    },
    surroundings,
  )
}

/** An address, or a host name to be resolved by the client; undefined for a Unix socket. */
export function placeOf(address = ''): { addresses: Uint8Array[] } | { hostname: string } | undefined {
  if (address.startsWith('unix://')) return undefined
  const ip = parseIp(address)
  return ip === undefined ? { hostname: address } : { addresses: [ip] }
}

export function capacityOf(weight: number | undefined): { capacity?: number } {
  return weight !== undefined && weight > 0 ? { capacity: weight } : {}
}

/** Entries whose proxy reports health are healthy only while it says so. */
function isHealthy({ metadata, status }: WorkloadEntry): boolean {
  if (metadata.annotations?.['proxy.istio.io/health-checks-enabled'] !== 'true') return true
  return (status?.conditions ?? []).some(({ type, status: value }) => type === 'Healthy' && value === 'True')
}
