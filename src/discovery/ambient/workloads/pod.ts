// Pods as workloads.
import { workload } from '../../../proto/index.ts'
import { parseIp } from '../addresses.ts'
import type { InCluster, Pod } from '../inputs.ts'
import { canonicalName, canonicalRevision, podWorkloadName } from './names.ts'
import { type Locality, tunnelOf, type WorkloadInit, type WorkloadSurroundings, workloadMessage } from './workload.ts'

/** The addresses of a pod; undefined where it is no workload (finished, without address, with an unreadable one). */
export function podAddresses({ status }: Pod): Uint8Array[] | undefined {
  if (status?.phase === 'Failed' || status?.phase === 'Succeeded') return undefined
  const texts = (status?.podIPs ?? []).flatMap(({ ip }) => (ip === undefined ? [] : [ip]))
  if (texts.length === 0 && status?.podIP !== undefined && status.podIP !== '') texts.push(status.podIP)
  const addresses = texts.map(parseIp).filter((address) => address !== undefined)
  return addresses.length === 0 || addresses.length < texts.length ? undefined : addresses
}

export function podWorkload(
  { cluster, object }: InCluster<Pod>,
  addresses: readonly Uint8Array[],
  locality: Locality | undefined,
  surroundings: WorkloadSurroundings,
): workload.Workload {
  const { metadata, spec } = object
  const workloadName = podWorkloadName(metadata)
  const own: WorkloadInit = {
    uid: podUid(cluster, metadata.namespace ?? '', metadata.name),
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    addresses: [...addresses],
    ...tunnelOf(metadata),
    serviceAccount: spec?.serviceAccountName ?? '',
    node: spec?.nodeName ?? '',
    canonicalName: canonicalName(metadata.labels ?? {}, workloadName),
    canonicalRevision: canonicalRevision(metadata.labels ?? {}),
    workloadType: workload.WorkloadType.POD,
    workloadName,
    status: isReady(object) ? workload.WorkloadStatus.HEALTHY : workload.WorkloadStatus.UNHEALTHY,
    clusterId: cluster,
    ...(locality === undefined ? {} : { locality }),
    networkMode: spec?.hostNetwork === true ? workload.NetworkMode.HOST_NETWORK : workload.NetworkMode.STANDARD,
  }
  return workloadMessage(own, surroundings)
}

export function podUid(cluster: string, namespace: string, name: string): string {
  return `${cluster}//Pod/${namespace}/${name}`
}

function isReady({ metadata, status }: Pod): boolean {
  if (metadata.deletionTimestamp !== undefined) return false
  return (status?.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True')
}
