// Kubernetes Services as services of the mesh.
import { workload } from '../../../proto/index.ts'
import { parseIp } from '../addresses.ts'
import type { InCluster, Service } from '../inputs.ts'
import type { ServiceInfo } from '../model.ts'
import type { Attachment } from '../waypoints/attachment.ts'
import { appProtocolOfServicePort } from './app-protocol.ts'
import { loadBalancingOf, trafficDistributionAnnotation } from './load-balancing.ts'

/** Undefined for ExternalName services: they are names of something else. */
export function kubernetesService(
  { cluster, object }: InCluster<Service>,
  surroundings: {
    readonly domainSuffix: string
    readonly network: string
    readonly scope: 'LOCAL' | 'GLOBAL'
    readonly attachment: Attachment
    readonly namespaceTrafficDistribution: () => string | undefined
  },
): ServiceInfo | undefined {
  const { metadata, spec } = object
  if (spec === undefined || spec.type === 'ExternalName') return undefined
  const namespace = metadata.namespace ?? ''
  const ports = spec.ports ?? []
  const single = spec.clusterIP === undefined ? [] : [spec.clusterIP]
  const clusterIps = spec.clusterIPs !== undefined && spec.clusterIPs.length > 0 ? spec.clusterIPs : single
  const selector = spec.selector
  return {
    cluster,
    source: { kind: 'Service', namespace, name: metadata.name, created: metadata.creationTimestamp ?? '' },
    namespace,
    hostname: `${metadata.name}.${namespace}.svc.${surroundings.domainSuffix}`,
    addresses: clusterIps
      .map(parseIp)
      .filter((address) => address !== undefined)
      .map((address) => ({ network: surroundings.network, address })),
    ports: ports.map((port) => ({
      number: port.port,
      name: port.name ?? '',
      protocol: port.protocol ?? 'TCP',
      target: targetOf(port.targetPort),
    })),
    appProtocols: ports.map(appProtocolOfServicePort),
    subjectAltNames: [],
    ipFamilies: ipFamiliesOf(spec.ipFamilies ?? []),
    loadBalancing: loadBalancingOf({
      internalTrafficPolicy: spec.internalTrafficPolicy,
      trafficDistribution: spec.trafficDistribution,
      annotation: metadata.annotations?.[trafficDistributionAnnotation],
      namespaceAnnotation: surroundings.namespaceTrafficDistribution,
      publishNotReadyAddresses: spec.publishNotReadyAddresses,
    }),
    selector: selector === undefined || Object.keys(selector).length === 0 ? undefined : selector,
    visibility: 'PUBLIC',
    scope: surroundings.scope,
    attachment: surroundings.attachment,
  }
}

function targetOf(targetPort: number | string | undefined): number | string {
  if (targetPort === undefined || targetPort === '') return 0
  return typeof targetPort === 'string' && /^\d+$/.test(targetPort) ? Number(targetPort) : targetPort
}

function ipFamiliesOf(families: readonly string[]): workload.IPFamilies {
  if (families.length === 0) return workload.IPFamilies.AUTOMATIC
  if (families.length > 1) return workload.IPFamilies.DUAL
  return families[0] === 'IPv6' ? workload.IPFamilies.IPV6_ONLY : workload.IPFamilies.IPV4_ONLY
}
