// The collections everything else reads: mesh config, networks, namespaces, nodes, waypoints, network gateways.

import { matchesLabelSelector } from '../../api/index.ts'
import type { Collection, Index, ReadContext, Singleton } from '../../collections/index.ts'
import { type AmbientMeshConfig, objectKey } from './inputs.ts'
import type { GatewayAddressInit } from './model.ts'
import {
  compareGateways,
  gatewayAddress,
  type NetworkGateway,
  networkGateways,
  networkLabel,
  placeText,
} from './networks.ts'
import type { AmbientObjectGraph } from './object-graph.ts'
import { trafficDistributionAnnotation } from './services/load-balancing.ts'
import { validVisibility } from './services/visibility.ts'
import { type AmbientSettings, defaultRootNamespace, defaultTrustDomain } from './settings.ts'
import { type NamespaceDefaults, namespaceDefaultsOf, type WaypointLookup } from './waypoints/attachment.ts'
import { type Waypoint, waypointOf } from './waypoints/waypoint.ts'
import type { Locality } from './workloads/workload.ts'

export interface Base {
  readonly rootNamespace: Singleton<string>
  readonly trustDomain: Singleton<string>
  readonly meshConfig: Singleton<AmbientMeshConfig>
  readonly visibilityConfig: Singleton<NonNullable<AmbientMeshConfig['serviceEntryVisibility']>>
  /** Name of the network of each cluster that names one. */
  readonly networks: Collection<string>
  readonly localities: Collection<Locality>
  readonly namespaceDefaults: Collection<NamespaceDefaults>
  readonly waypoints: Collection<Waypoint>
  readonly gateways: Collection<NetworkGateway>
  readonly gatewaysByNetwork: Index<NetworkGateway>
  networkOf(context: ReadContext, cluster: string): string
  /** As on the wire: empty for `cluster.local`. */
  wireTrustDomain(context: ReadContext): string
  namespaceLabels(context: ReadContext, cluster: string, namespace: string): Readonly<Record<string, string>>
  namespaceTrafficDistribution(context: ReadContext, cluster: string, namespace: string): string | undefined
  /** The gateway for clients on other networks. */
  gatewayInto(context: ReadContext, network: string): GatewayAddressInit | undefined
  waypointLookup(context: ReadContext, cluster: string, namespace: string): WaypointLookup
}

export function createBase({ graph, collections, meshConfig }: AmbientObjectGraph, settings: AmbientSettings): Base {
  const { clusterId, systemNamespace } = settings
  const rootNamespace = graph.singleton(
    'rootNamespace',
    (context) => context.value(meshConfig)?.rootNamespace || defaultRootNamespace,
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
  const networks = graph.deriveMany('networks', collections.namespaces, (_, { cluster, object }) => {
    const network = object.metadata.labels?.[networkLabel]
    return object.metadata.name === systemNamespace && network !== undefined ? [[cluster, network] as const] : []
  })
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
  const networkOf = (context: ReadContext, cluster: string): string => context.get(networks, cluster) ?? ''
  const waypoints = graph.derive('waypoints', collections.gateways, (context, { cluster, object }) => {
    const gatewayClass = context.get(
      collections.gatewayClasses,
      objectKey(clusterId, undefined, object.spec?.gatewayClassName ?? ''),
    )
    return waypointOf(cluster, object, gatewayClass?.object, networkOf(context, cluster))
  })
  const foundGateways = graph.derive('networkGateways/found', collections.gateways, (_, gateway) =>
    networkGateways(gateway, clusterId),
  )
  const allGateways = graph.deriveMany('networkGateways/each', foundGateways, (_, found) =>
    found.map((one) => [`${one.cluster} ${one.namespace}/${one.name} ${placeText(one)}`, one] as const),
  )
  const samePlace = graph.group('networkGateways/place', allGateways, (one) => [
    `${one.namespace}/${one.name} ${placeText(one)}`,
  ])
  const gateways = graph.derive(
    'networkGateways',
    samePlace,
    (_, [first, ...others]) => others.find(({ cluster }) => cluster === clusterId) ?? first,
  )
  const gatewaysByNetwork = graph.index('networkGateways/network', gateways, ({ network }) => [network])
  const noLabels: Readonly<Record<string, string>> = {}

  const namespaceLabels: Base['namespaceLabels'] = (context, cluster, namespace) =>
    context.pick(
      collections.namespaces,
      objectKey(cluster, undefined, namespace),
      (found) => found?.object.metadata.labels ?? noLabels,
    )
  return {
    rootNamespace,
    trustDomain,
    meshConfig,
    visibilityConfig,
    networks,
    localities,
    namespaceDefaults,
    waypoints,
    gateways,
    gatewaysByNetwork,
    networkOf,
    namespaceLabels,
    wireTrustDomain: (context) => {
      const domain = context.value(trustDomain) ?? defaultTrustDomain
      return domain === defaultTrustDomain ? '' : domain
    },
    namespaceTrafficDistribution: (context, cluster, namespace) =>
      context.pick(
        collections.namespaces,
        objectKey(cluster, undefined, namespace),
        (found) => found?.object.metadata.annotations?.[trafficDistributionAnnotation],
      ),
    gatewayInto: (context, network) => {
      const [first] = context
        .listBy(gatewaysByNetwork, network, { where: ({ hbonePort }) => hbonePort !== 0 })
        .toSorted(compareGateways)
      return first === undefined ? undefined : gatewayAddress(first)
    },
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
