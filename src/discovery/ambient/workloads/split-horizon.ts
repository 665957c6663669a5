// The members of a service on another network as one workload behind that network's gateway.
import { create } from '@bufbuild/protobuf'
import { workload } from '../../../proto/index.ts'
import type { PublishedService } from '../model.ts'
import { gatewayAddress, type NetworkGateway, placeText } from '../networks.ts'
import { portLists } from './workload.ts'

export function splitHorizonWorkload(
  key: string,
  { info }: PublishedService,
  members: readonly workload.Workload[],
  gateway: NetworkGateway,
  trustDomain: string,
): workload.Workload {
  const healthy = members.filter(({ status }) => status === workload.WorkloadStatus.HEALTHY)
  const counted = healthy.length > 0 ? healthy : members
  const { namespace, name, network, cluster } = gateway
  const uid = `${network}/SplitHorizonWorkload/${namespace}/${name}/${placeText(gateway)}/${key}`
  const message = create(workload.WorkloadSchema, {
    uid,
    name: uid,
    namespace: info.namespace,
    network,
    trustDomain,
    tunnelProtocol: workload.TunnelProtocol.HBONE,
    networkGateway: gatewayAddress(gateway),
    workloadType: workload.WorkloadType.POD,
    clusterId: cluster,
    capacity: counted.reduce((sum, { capacity }) => sum + (capacity ?? 1), 0),
    status: healthy.length > 0 ? workload.WorkloadStatus.HEALTHY : workload.WorkloadStatus.UNHEALTHY,
    services: portLists(new Map([[key, []]])),
  })
  const list = message.services[key]
  if (list !== undefined) {
    list.ports = info.ports.map(({ number, target }, at) =>
      create(workload.PortSchema, {
        servicePort: number,
        targetPort: typeof target === 'number' ? target : 0,
        appProtocol: info.appProtocols[at] ?? workload.AppProtocol.UNKNOWN,
      }),
    )
  }
  return message
}
