// From pods, entries, endpoints and slices to workloads.
import type { Collection, ReadContext } from '../../collections/index.ts'
import { parseIp } from './addresses.ts'
import type { Base } from './base.ts'
import { objectKey } from './inputs.ts'
import { containsLabels } from './labels.ts'
import { type Membership, serviceKey, type WorkloadInfo } from './model.ts'
import { compareGateways, gatewayUid, gatewayWorkload } from './networks.ts'
import type { AmbientObjectGraph } from './object-graph.ts'
import { waypointAllowKey } from './policies/waypoint-allow.ts'
import type { PolicyGraph } from './policy-graph.ts'
import { membershipKey, type ServiceGraph } from './service-graph.ts'
import type { AmbientSettings } from './settings.ts'
import { type Attachment, attachWorkload, type Metadata } from './waypoints/attachment.ts'
import type { InboundBinding } from './waypoints/waypoint.ts'
import { type PodReference, podReferences, serviceOfSlice, sliceWorkloads } from './workloads/endpoint-slice.ts'
import { podAddresses, podWorkload } from './workloads/pod.ts'
import { entryTarget, type PortPair, podTarget, portPairs } from './workloads/ports.ts'
import { endpointsOf, endpointWorkload } from './workloads/service-entry-endpoint.ts'
import type { WorkloadSurroundings } from './workloads/workload.ts'
import { workloadEntryLabels, workloadEntryWorkload } from './workloads/workload-entry.ts'

export interface WorkloadGraph {
  /** Every workload but those behind gateways of other networks, by uid. */
  readonly workloads: Collection<WorkloadInfo>
  /** How each WorkloadEntry is attached, by input key. */
  readonly entryAttachments: Collection<Attachment>
  /** The pods that EndpointSlices name. */
  readonly podReferences: Collection<PodReference>
}

/** For values passed on unchanged: those that are equal are identical. */
const sameMessage = (a: WorkloadInfo, b: WorkloadInfo): boolean => a.message === b.message

export function createWorkloadGraph(
  { graph, collections }: AmbientObjectGraph,
  base: Base,
  services: ServiceGraph,
  policies: PolicyGraph,
  settings: AmbientSettings,
): WorkloadGraph {
  const { clusterId, domainSuffix } = settings

  const references = graph.deriveMany('slices/pods', collections.endpointSlices, (_, slice) =>
    podReferences(slice, domainSuffix),
  )
  const referencesByPod = graph.index('slices/pods/pod', references, ({ pod }) => [pod])

  /** The services whose selector selects these labels. */
  const selecting = (
    context: ReadContext,
    cluster: string,
    namespace: string,
    labels: Readonly<Record<string, string>> | undefined,
    kinds: Readonly<Record<Membership['kind'], boolean>>,
  ): readonly Membership[] =>
    context.listBy(services.membershipsByNamespace, `${cluster}/${namespace}`, {
      where: ({ kind, selector }) => kinds[kind] && selector !== undefined && containsLabels(labels, selector),
    })

  /** What applies to a workload beyond its own object. */
  const surroundingsOf = (
    context: ReadContext,
    own: {
      readonly cluster: string
      readonly namespace: string
      readonly network: string
      readonly labels: Readonly<Record<string, string>>
      readonly services: ReadonlyMap<string, readonly PortPair[]>
      readonly attachment: { readonly attachment: Attachment; readonly binding: InboundBinding | undefined }
    },
  ): WorkloadSurroundings => {
    const { attachment, binding } = own.attachment
    const implicit = settings.autoAllowWaypoints
      ? waypointPolicies(context, own.cluster, own.services.keys(), attachment)
      : []
    return {
      network: own.network,
      trustDomain: base.wireTrustDomain(context, own.cluster),
      networkGateway: base.networks.gatewayInto(context, own.network),
      services: own.services,
      policies: [...policies.keysFor(context, own.namespace, own.labels), ...implicit],
      attachment,
      binding,
    }
  }

  const waypointPolicies = (
    context: ReadContext,
    cluster: string,
    keys: Iterable<string>,
    attachment: Attachment,
  ): string[] => {
    const ofServices = [...keys].sort().flatMap((key) => [
      ...context.pick(services.local, key, (service) => waypointKeys(service?.info.attachment)),
      // In another cluster clients take the waypoint that is declared there.
      ...context.pick(services.remote, membershipKey(cluster, key), (info) => waypointKeys(info?.attachment)),
    ])
    const wanted = new Set([...ofServices, ...waypointKeys(attachment)])
    return [...wanted].filter((key) => context.pick(policies.authorizations, key, (policy) => policy !== undefined))
  }

  const attachmentOf = (
    context: ReadContext,
    cluster: string,
    namespace: string,
    { labels, annotations }: Metadata,
  ) => {
    const gateway = labels?.['gateway.networking.k8s.io/gateway-name']
    const instance =
      gateway === undefined ? undefined : context.get(base.waypoints, objectKey(cluster, namespace, gateway))
    if (instance !== undefined) return { attachment: { kind: 'none' } as const, binding: instance.binding }
    const lookup = base.waypointLookup(context, cluster, namespace)
    return { attachment: attachWorkload(lookup, { labels, annotations, namespace }), binding: undefined }
  }

  const pods = graph.derive('workloads/pods', collections.pods, (context, pod, key): WorkloadInfo | undefined => {
    const { cluster, object } = pod
    const addresses = podAddresses(object)
    if (addresses === undefined) return undefined
    const { metadata, spec } = object
    const namespace = metadata.namespace ?? ''
    const labels = metadata.labels ?? {}
    const kinds = { Service: true, ServiceEntry: settings.serviceEntriesSelectPods }
    const joined = new Map<string, readonly PortPair[]>()
    const join = ({ service, kind, ports }: Membership): void => {
      if (!joined.has(service)) joined.set(service, portPairs(ports, podTarget(spec, kind)))
    }
    for (const member of selecting(context, cluster, namespace, labels, kinds)) join(member)
    for (const { service, uid } of context.listBy(referencesByPod, key)) {
      if (uid !== metadata.uid) continue
      const member = context.get(services.memberships, membershipKey(cluster, service))
      if (member?.kind === 'Service') join(member)
    }
    const [address] = addresses
    const surroundings = surroundingsOf(context, {
      cluster,
      namespace,
      network: base.networks.networkOfEndpoint(context, { cluster, labels, address }),
      labels,
      services: joined,
      attachment: attachmentOf(context, cluster, namespace, metadata),
    })
    const locality =
      spec?.nodeName === undefined
        ? undefined
        : context.get(base.localities, objectKey(cluster, undefined, spec.nodeName))
    return { cluster, message: podWorkload(pod, addresses, locality, surroundings) }
  })

  const entryAttachments = graph.derive(
    'workloads/entries/attachments',
    collections.workloadEntries,
    (context, { object }) => {
      const namespace = object.metadata.namespace ?? ''
      const metadata = { labels: workloadEntryLabels(object), annotations: object.metadata.annotations }
      return attachmentOf(context, clusterId, namespace, metadata)
    },
  )
  const entries = graph.derive('workloads/entries', collections.workloadEntries, (context, { object }, key) => {
    const { metadata, spec } = object
    const namespace = metadata.namespace ?? ''
    const labels = workloadEntryLabels(object)
    const kinds = { Service: settings.servicesSelectWorkloadEntries, ServiceEntry: true }
    const joined = new Map(
      selecting(context, clusterId, namespace, labels, kinds).map((member) => [
        member.service,
        portPairs(member.ports, entryTarget(spec?.ports, member.kind)),
      ]),
    )
    const surroundings = surroundingsOf(context, {
      cluster: clusterId,
      namespace,
      network:
        spec?.network ||
        base.networks.networkOfEndpoint(context, { cluster: clusterId, labels, address: parseIp(spec?.address ?? '') }),
      labels,
      services: joined,
      attachment: context.get(entryAttachments, key) ?? { attachment: { kind: 'none' }, binding: undefined },
    })
    const message = workloadEntryWorkload(clusterId, object, surroundings)
    return message === undefined ? undefined : { cluster: clusterId, message }
  })

  const endpoints = graph.deriveMany('workloads/endpoints', services.entries, (context, { entry, visibility }) => {
    if (visibility === 'NONE') return []
    const { metadata, spec } = entry
    const namespace = metadata.namespace ?? ''
    const labels = metadata.labels ?? {}
    const hosts = [...new Set(spec?.hosts ?? [])].filter((host) =>
      context.pick(
        services.local,
        serviceKey(namespace, host),
        (service) => service?.info.source.kind === 'ServiceEntry' && service.info.source.name === metadata.name,
      ),
    )
    return endpointsOf(entry, hosts).flatMap(({ endpoint, impliedBy }) => {
      const joined = new Map<string, readonly PortPair[]>()
      for (const host of impliedBy === undefined ? hosts : [impliedBy]) {
        const key = serviceKey(namespace, host)
        const member = context.get(services.memberships, membershipKey(clusterId, key))
        joined.set(key, portPairs(member?.ports ?? [], entryTarget(endpoint.ports, 'ServiceEntry')))
      }
      const surroundings = surroundingsOf(context, {
        cluster: clusterId,
        namespace,
        network:
          endpoint.network ||
          base.networks.networkOfEndpoint(context, {
            cluster: clusterId,
            labels: endpoint.labels ?? {},
            address: parseIp(endpoint.address ?? ''),
          }),
        labels,
        services: joined,
        attachment:
          impliedBy === undefined
            ? attachmentOf(context, clusterId, namespace, { labels: endpoint.labels })
            : { attachment: { kind: 'none' }, binding: undefined },
      })
      const message = endpointWorkload(clusterId, entry, endpoint, surroundings)
      return message === undefined ? [] : [[message.uid, { cluster: clusterId, message }] as const]
    })
  })

  const slices = graph.deriveMany('workloads/slices', collections.endpointSlices, (context, slice) => {
    const { cluster, object } = slice
    const service = serviceOfSlice(object, domainSuffix)
    const member =
      service === undefined ? undefined : context.get(services.memberships, membershipKey(cluster, service))
    if (member?.kind !== 'Service') return []
    const networkOf = (address: Uint8Array): string =>
      base.networks.networkOfEndpoint(context, { cluster, labels: {}, address })
    return sliceWorkloads(slice, member, { networkOf, trustDomain: base.wireTrustDomain(context, cluster) }).map(
      (message) => [message.uid, { cluster, message }] as const,
    )
  })

  const gatewaysByUid = graph.group('networkGateways/uid', base.networks.gateways, (gateway) => [gatewayUid(gateway)])
  const gateways = graph.derive('workloads/gateways', gatewaysByUid, (context, found): WorkloadInfo | undefined => {
    const [gateway] = found.toSorted(compareGateways)
    if (gateway === undefined) return undefined
    const message = gatewayWorkload(gateway, base.wireTrustDomain(context, gateway.cluster))
    return { cluster: gateway.cluster, message }
  })

  const byUid = (name: string, source: Collection<WorkloadInfo>): Collection<WorkloadInfo> =>
    graph.deriveMany(name, source, (_, info) => [[info.message.uid, info] as const], { equals: sameMessage })
  const sent = [byUid('workloads/pods/uid', pods), byUid('workloads/entries/uid', entries), endpoints, slices, gateways]
  return {
    workloads: graph.join('workloads', sent, { equals: sameMessage }),
    entryAttachments: graph.derive('workloads/entries/waypoints', entryAttachments, (_, { attachment }) => attachment),
    podReferences: references,
  }
}

/** The policies that let in the waypoints something is attached to: the first one, and its canary. */
function waypointKeys(attachment: Attachment | undefined): string[] {
  if (attachment?.kind !== 'bound') return []
  const { waypoint, canary } = attachment
  return [waypoint, ...(canary?.kind === 'bound' ? [canary.waypoint] : [])].map(waypointAllowKey)
}
