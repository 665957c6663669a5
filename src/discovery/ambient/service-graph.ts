// From objects to the services that are served, and what workloads need to know to join them.
import type { ServiceEntry } from '../../api/index.ts'
import type { Collection, Index } from '../../collections/index.ts'
import type { Base } from './base.ts'
import { type Membership, type PublishedService, type ServiceInfo, serviceKey } from './model.ts'
import type { AmbientObjectGraph } from './object-graph.ts'
import { kubernetesService } from './services/kubernetes-service.ts'
import { published } from './services/published.ts'
import { serviceEntryServices } from './services/service-entry.ts'
import { scopeOf, visibilityOf } from './services/visibility.ts'
import type { AmbientSettings } from './settings.ts'
import { type Attachment, attachService } from './waypoints/attachment.ts'

/** A ServiceEntry, seen as a whole. */
export interface EntryInfo {
  readonly entry: ServiceEntry
  readonly visibility: 'PUBLIC' | 'NAMESPACE' | 'NONE'
  readonly attachment: Attachment
}

export interface ServiceGraph {
  /** By input key. */
  readonly kubernetes: Collection<ServiceInfo>
  readonly entries: Collection<EntryInfo>
  /** The services of the config cluster that are served, by service key. */
  readonly local: Collection<PublishedService>
  /** GLOBAL services of other clusters, by service key and cluster. */
  readonly remote: Collection<ServiceInfo>
  readonly remoteByService: Index<ServiceInfo>
  readonly memberships: Collection<Membership>
  /** Memberships with a selector, by `<cluster>/<namespace>`. */
  readonly membershipsByNamespace: Index<Membership>
}

export const membershipKey = (cluster: string, service: string): string => `${cluster} ${service}`

export function createServiceGraph(inputs: AmbientObjectGraph, base: Base, settings: AmbientSettings): ServiceGraph {
  const { graph, collections } = inputs
  const { clusterId, domainSuffix, multiNetwork, allocateAddresses } = settings

  const kubernetes = graph.derive('services/kubernetes', collections.services, (context, service) => {
    const { cluster, object } = service
    const namespace = object.metadata.namespace ?? ''
    const scopes = multiNetwork
      ? context.pick(base.meshConfig.collection, '', (config) => config?.serviceScopeConfigs)
      : []
    return kubernetesService(service, {
      domainSuffix,
      network: base.networks.networkOf(context, cluster),
      scope: multiNetwork
        ? scopeOf(scopes, base.namespaceLabels(context, cluster, namespace), object.metadata.labels ?? {})
        : 'LOCAL',
      attachment: attachService(base.waypointLookup(context, cluster, namespace), {
        ...object.metadata,
        namespace,
        confinedToNamespace: false,
      }),
      namespaceTrafficDistribution: () => base.namespaceTrafficDistribution(context, cluster, namespace),
    })
  })

  const entries = graph.derive('serviceEntries/info', collections.serviceEntries, (context, { object }): EntryInfo => {
    const namespace = object.metadata.namespace ?? ''
    const config = context.value(base.visibilityConfig)
    const visibility =
      config === undefined ? 'PUBLIC' : visibilityOf(config, base.namespaceLabels(context, clusterId, namespace))
    const attachment = attachService(base.waypointLookup(context, clusterId, namespace), {
      ...object.metadata,
      namespace,
      confinedToNamespace: visibility === 'NAMESPACE',
    })
    return { entry: object, visibility, attachment }
  })
  const entryServices = graph.deriveMany('services/serviceEntries', entries, (context, info, key) => {
    const { entry, visibility, attachment } = info
    if (visibility === 'NONE') return []
    const namespace = entry.metadata.namespace ?? ''
    const services = serviceEntryServices(entry, {
      cluster: clusterId,
      network: base.networks.networkOf(context, clusterId),
      visibility,
      attachment,
      allocateAddresses,
      namespaceTrafficDistribution: () => base.namespaceTrafficDistribution(context, clusterId, namespace),
    })
    return services.map((service) => [`${key} ${service.hostname}`, service] as const)
  })

  const ownKubernetes = graph.derive('services/own', kubernetes, (_, info) =>
    info.cluster === clusterId ? info : undefined,
  )
  const candidates = graph.join('services/candidates', [ownKubernetes, entryServices])
  const byHostname = graph.group('services/hostnames', candidates, ({ hostname }) => [hostname])
  const local = graph.deriveMany('services/local', byHostname, (_, infos) => published(infos))
  const remote = graph.deriveMany('services/remote', kubernetes, (_, info) =>
    info.cluster !== clusterId && info.scope === 'GLOBAL'
      ? [[membershipKey(info.cluster, serviceKey(info.namespace, info.hostname)), info] as const]
      : [],
  )
  const remoteByService = graph.index('services/remote/key', remote, ({ namespace, hostname }) => [
    serviceKey(namespace, hostname),
  ])

  const localMemberships = graph.deriveMany('memberships/local', local, (_, { info }, key) => [
    [membershipKey(info.cluster, key), membershipOf(info)] as const,
  ])
  const remoteMemberships = graph.derive('memberships/remote', remote, (_, info) => membershipOf(info))
  const memberships = graph.join('memberships', [localMemberships, remoteMemberships])
  const membershipsByNamespace = graph.index(
    'memberships/namespace',
    memberships,
    ({ cluster, namespace, selector }) => (selector === undefined ? [] : [`${cluster}/${namespace}`]),
  )
  return { kubernetes, entries, local, remote, remoteByService, memberships, membershipsByNamespace }
}

function membershipOf({ cluster, source, namespace, hostname, selector, ports }: ServiceInfo): Membership {
  return { cluster, namespace, service: serviceKey(namespace, hostname), kind: source.kind, selector, ports }
}
