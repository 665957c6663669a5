// EndpointSlices: which pods they make members of a service, and the endpoints that are no pods as workloads.
import { create } from '@bufbuild/protobuf'
import { workload } from '../../../proto/index.ts'
import { parseIp } from '../addresses.ts'
import { type EndpointSlice, type InCluster, objectKey } from '../inputs.ts'
import { type Membership, serviceKey } from '../model.ts'
import { portPairs } from './ports.ts'
import { portLists } from './workload.ts'

/** A pod that a slice names. */
export interface PodReference {
  readonly cluster: string
  /** Key of the pod among the input pods. */
  readonly pod: string
  readonly uid: string | undefined
  /** Key of the service that the slice belongs to. */
  readonly service: string
}

/** Key of the service a slice belongs to; undefined where it belongs to none that is served here. */
export function serviceOfSlice({ metadata, addressType }: EndpointSlice, domainSuffix: string): string | undefined {
  const service = metadata.labels?.['kubernetes.io/service-name']
  if (service === undefined || service === '' || addressType === 'FQDN') return undefined
  const namespace = metadata.namespace ?? ''
  return serviceKey(namespace, `${service}.${namespace}.svc.${domainSuffix}`)
}

export function podReferences(
  { cluster, object }: InCluster<EndpointSlice>,
  domainSuffix: string,
): [key: string, reference: PodReference][] {
  const service = serviceOfSlice(object, domainSuffix)
  if (service === undefined) return []
  const slice = objectKey(cluster, object.metadata.namespace, object.metadata.name)
  const references = new Map<string, PodReference>()
  for (const { targetRef } of object.endpoints ?? []) {
    if (targetRef?.kind !== 'Pod' || targetRef.name === undefined) continue
    const pod = objectKey(cluster, targetRef.namespace ?? object.metadata.namespace, targetRef.name)
    references.set(`${slice} ${pod} ${targetRef.uid ?? ''}`, { cluster, pod, uid: targetRef.uid, service })
  }
  return [...references]
}

/** The endpoints of a slice that are no pods, as members of its service. */
export function sliceWorkloads(
  { cluster, object }: InCluster<EndpointSlice>,
  member: Membership,
  surroundings: { readonly networkOf: (address: Uint8Array) => string; readonly trustDomain: string },
): workload.Workload[] {
  const { metadata, ports } = object
  const namespace = metadata.namespace ?? ''
  const numbers = new Map<string, number>()
  for (const { name, port, protocol } of ports ?? []) {
    if (name !== undefined && port !== undefined && (protocol ?? 'TCP') === 'TCP') numbers.set(name, port)
  }
  const pairs = portPairs(member.ports, ({ name }) => numbers.get(name))
  const workloads: workload.Workload[] = []
  const seen = new Set<string>()
  for (const { addresses: texts, conditions, targetRef } of object.endpoints ?? []) {
    const first = texts?.[0]
    if (targetRef?.kind === 'Pod' || first === undefined || seen.has(first)) continue
    seen.add(first)
    const addresses = texts.map(parseIp).filter((address) => address !== undefined)
    const [address] = addresses
    if (address === undefined || addresses.length < texts.length) continue
    const message = create(workload.WorkloadSchema, {
      uid: `${cluster}/discovery.k8s.io/EndpointSlice/${namespace}/${metadata.name}/${first}`,
      name: metadata.name,
      namespace,
      addresses,
      network: surroundings.networkOf(address),
      trustDomain: surroundings.trustDomain,
      clusterId: cluster,
      status: conditions?.ready === false ? workload.WorkloadStatus.UNHEALTHY : workload.WorkloadStatus.HEALTHY,
      // The address may be a host's: it is not claimed for this workload alone.
      networkMode: workload.NetworkMode.HOST_NETWORK,
      services: portLists(new Map([[member.service, pairs]])),
    })
    workloads.push(message)
  }
  return workloads
}
