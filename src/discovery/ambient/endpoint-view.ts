// Who stands behind each service, as a person reads it.
import { fromBinary } from '@bufbuild/protobuf'
import { workload } from '../../proto/index.ts'
import { ipText } from './addresses.ts'
import type { AmbientIndex } from './ambient-index.ts'
import { compareText, serviceKey } from './model.ts'

export interface ServiceEndpoints {
  /** `<namespace>/<hostname>` */
  readonly service: string
  readonly endpoints: readonly EndpointView[]
}

export interface EndpointView {
  /** Its uid. */
  readonly workload: string
  /** Its hostname where it has none. */
  readonly addresses: readonly string[]
  readonly network: string
  readonly cluster: string
  readonly isHealthy: boolean
  /** By the port of the service, the port of the workload. */
  readonly ports: Readonly<Record<string, number>>
}

/** Every service that is served, in the order of their keys, also those without anybody. */
export function viewEndpoints({ addresses }: Pick<AmbientIndex, 'addresses'>): readonly ServiceEndpoints[] {
  const byService = new Map<string, EndpointView[]>()
  const of = (key: string): EndpointView[] => {
    const known = byService.get(key) ?? []
    byService.set(key, known)
    return known
  }
  for (const { body } of addresses.list()) {
    const { type } = fromBinary(workload.AddressSchema, body)
    if (type.case === 'service') of(serviceKey(type.value.namespace, type.value.hostname))
    if (type.case !== 'workload') continue
    for (const [key, list] of Object.entries(type.value.services)) of(key).push(endpointOf(type.value, list))
  }
  return [...byService]
    .sort(([a], [b]) => compareText(a, b))
    .map(([service, endpoints]) => ({
      service,
      endpoints: endpoints.sort((a, b) => compareText(a.workload, b.workload)),
    }))
}

function endpointOf(member: workload.Workload, { ports }: workload.PortList): EndpointView {
  return {
    workload: member.uid,
    addresses: member.addresses.length > 0 ? member.addresses.map(ipText) : [member.hostname],
    network: member.network,
    cluster: member.clusterId,
    isHealthy: member.status === workload.WorkloadStatus.HEALTHY,
    ports: Object.fromEntries(ports.map(({ servicePort, targetPort }) => [servicePort, targetPort])),
  }
}
