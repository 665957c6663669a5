// A service as its message of the Workload API.
import { create } from '@bufbuild/protobuf'
import { workload } from '../../../proto/index.ts'
import { addressKey } from '../addresses.ts'
import { compareText, type PublishedService, type ServiceInfo } from '../model.ts'

/**
 * The message of a service. `others` are the same service as other clusters declare it: their addresses and names are
 * merged where the service is GLOBAL. `remoteIdentities` are SPIFFE ids of members on other networks.
 */
export function serviceMessage(
  { info, canonical }: PublishedService,
  others: readonly ServiceInfo[],
  remoteIdentities: readonly string[],
): workload.Service {
  const global = info.scope === 'GLOBAL'
  const merged = global ? [info, ...others] : [info]
  const bound = info.attachment.kind === 'bound' ? info.attachment : undefined
  const canary = bound?.canary?.kind === 'bound' ? bound.canary : undefined
  const names = merged.flatMap((one) => one.subjectAltNames)
  return create(workload.ServiceSchema, {
    name: info.source.name,
    namespace: info.namespace,
    hostname: info.hostname,
    addresses: global
      ? distinctAddresses(merged)
      : info.addresses.map(({ network, address, length }) => ({
          network,
          address,
          ...(length === undefined ? {} : { length }),
        })),
    ports: info.ports.map(({ number, target }, at) => ({
      servicePort: number,
      targetPort: typeof target === 'number' ? target : 0,
      appProtocol: info.appProtocols[at] ?? workload.AppProtocol.UNKNOWN,
    })),
    subjectAltNames: global ? [...new Set([...names, ...remoteIdentities])].sort() : names,
    ...(bound === undefined ? {} : { waypoint: bound.waypoint.address }),
    ...(info.loadBalancing === undefined ? {} : { loadBalancing: info.loadBalancing }),
    ipFamilies: info.ipFamilies,
    canonical,
    ingressUseWaypoint: bound?.ingress === true,
    weightedWaypoints:
      bound === undefined || canary === undefined
        ? []
        : [
            { destination: bound.waypoint.address, weight: 100 - canary.weight },
            { destination: canary.waypoint.address, weight: canary.weight },
          ],
    visibility:
      info.visibility === 'NAMESPACE' ? workload.Service_Visibility.NAMESPACE : workload.Service_Visibility.PUBLIC,
  })
}

function distinctAddresses(services: readonly ServiceInfo[]) {
  const byKey = new Map(
    services
      .flatMap((one) => one.addresses)
      .map((one) => [addressKey(one.network, one.address, one.length), one] as const),
  )
  return [...byKey]
    .sort(([a], [b]) => compareText(a, b))
    .map(([, { network, address, length }]) => ({ network, address, ...(length === undefined ? {} : { length }) }))
}
