// The collections everything else reads: mesh config, networks, namespaces, nodes, waypoints, network gateways.

import { matchesLabelSelector } from '../../api/index.ts'
import type { Collection, ReadContext, Singleton } from '../../collections/index.ts'
import { type AmbientMeshConfig, objectKey } from './inputs.ts'
import { createNetworkGraph, type NetworkGraph } from './network-graph.ts'
import type { AmbientObjectGraph } from './object-graph.ts'
import { trafficDistributionAnnotation } from './services/load-balancing.ts'
import { validVisibility } from './services/visibility.ts'
import { type AmbientSettings, defaultTrustDomain } from './settings.ts'
import { type NamespaceDefaults, namespaceDefaultsOf, type WaypointLookup } from './waypoints/attachment.ts'
import { type Waypoint, waypointOf } from './waypoints/waypoint.ts'
import type { Locality } from './workloads/workload.ts'

export interface Base {
  readonly networks: NetworkGraph
  readonly rootNamespace: Singleton<string>
  readonly meshConfig: Singleton<AmbientMeshConfig>
  readonly visibilityConfig: Singleton<NonNullable<AmbientMeshConfig['serviceEntryVisibility']>>
  readonly localities: Collection<Locality>
  readonly namespaceDefaults: Collection<NamespaceDefaults>
  readonly waypoints: Collection<Waypoint>
  /** The trust domain of a cluster: its own, where it says one. */
  trustDomainOf(context: ReadContext, cluster: string): string
  /** As on the wire: empty for `cluster.local`. */
  wireTrustDomain(context: ReadContext, cluster: string): string
  namespaceLabels(context: ReadContext, cluster: string, namespace: string): Readonly<Record<string, string>>
  namespaceTrafficDistribution(context: ReadContext, cluster: string, namespace: string): string | undefined
  waypointLookup(context: ReadContext, cluster: string, namespace: string): WaypointLookup
}

export function createBase(objects: AmbientObjectGraph, settings: AmbientSettings): Base {
  const { graph, collections, meshConfig, trustDomains } = objects
  const { clusterId, systemNamespace } = settings
  const networks = createNetworkGraph(objects, settings)
  const rootNamespace = graph.singleton(
    'rootNamespace',
    (context) => context.value(meshConfig)?.rootNamespace || systemNamespace,
  )
  const trustDomain = graph.singleton(
    'trustDomain',
    (context) => context.value(meshConfig)?.trustDomain || defaultTrustDomain,
  )
  const validVisibilityConfig = graph.singleton('serviceEntryVisibility/valid', (context) =>
    validVisibility(context.pick(meshConfig.collection, '', (config) => config?.serviceEntryVisibility)),
  )
  // One that is not valid leaves the last valid one in force; at the start, with none before, it is taken as it is.
  const visibilityConfig = graph.singleton(
    'serviceEntryVisibility',
    (context) =>
      context.value(validVisibilityConfig) ??
      context.pick(meshConfig.collection, '', (config) => config?.serviceEntryVisibility),
  )
  const localities = graph.derive('localities', collections.nodes, (_, { object }) => {
    const labels = object.metadata.labels ?? {}
    const locality: Locality = {
      region: labels['topology.kubernetes.io/region'] ?? '',
      zone: labels['topology.kubernetes.io/zone'] ?? '',
      subzone: labels['topology.istio.io/subzone'] ?? '',
    }
    return Object.values(locality).every((part) => part === '') ? undefined : locality
  })
  const namespaceDefaults = graph.derive('namespaceDefaults', collections.namespaces, (_, { object }) =>
    namespaceDefaultsOf(object.metadata),
  )
  const waypoints = graph.derive('waypoints', collections.gateways, (context, { cluster, object }) => {
    const gatewayClass = context.get(
      collections.gatewayClasses,
      objectKey(clusterId, undefined, object.spec?.gatewayClassName ?? ''),
    )
    return waypointOf(cluster, object, gatewayClass?.object, networks.networkOf(context, cluster))
  })
  const trustDomainOf = (context: ReadContext, cluster: string): string =>
    (cluster === clusterId ? undefined : context.get(trustDomains, cluster)) ??
    context.value(trustDomain) ??
    defaultTrustDomain
  const noLabels: Readonly<Record<string, string>> = {}

  const namespaceLabels: Base['namespaceLabels'] = (context, cluster, namespace) =>
    context.pick(
      collections.namespaces,
      objectKey(cluster, undefined, namespace),
      (found) => found?.object.metadata.labels ?? noLabels,
    )
  return {
    networks,
    rootNamespace,
    meshConfig,
    visibilityConfig,
    localities,
    namespaceDefaults,
    waypoints,
    namespaceLabels,
    trustDomainOf,
    wireTrustDomain: (context, cluster) => {
      const domain = trustDomainOf(context, cluster)
      return domain === defaultTrustDomain ? '' : domain
    },
    namespaceTrafficDistribution: (context, cluster, namespace) =>
      context.pick(
        collections.namespaces,
        objectKey(cluster, undefined, namespace),
        (found) => found?.object.metadata.annotations?.[trafficDistributionAnnotation],
      ),
    waypointLookup: (context, cluster, namespace) => ({
      waypoint: (waypointNamespace, name) => context.get(waypoints, objectKey(cluster, waypointNamespace, name)),
      admits: (waypoint, objectNamespace) => {
        switch (waypoint.allowedNamespaces.kind) {
          case 'all':
            return true
          case 'same':
            return waypoint.namespace === objectNamespace
          case 'selected': {
            const { selector } = waypoint.allowedNamespaces
            return context.pick(
              collections.namespaces,
              objectKey(cluster, undefined, objectNamespace),
              (found) => found !== undefined && matchesLabelSelector(selector, found.object.metadata.labels),
            )
          }
        }
      },
      namespaceDefaults: () => context.get(namespaceDefaults, objectKey(cluster, undefined, namespace)),
    }),
  }
}
