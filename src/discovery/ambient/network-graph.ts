// The networks of the mesh as collections: which cluster and which address is on which, and the gateways into each.
import { matchesLabelSelector } from '../../api/index.ts'
import type { Collection, Index, ReadContext } from '../../collections/index.ts'
import {
  externalPlaces,
  gatewaysOfService,
  networkOfGatewayService,
  serviceOfHostname,
  takesTunnels,
  type UnusedGateway,
  writtenText,
} from './gateway-services.ts'
import { type InCluster, objectKey, type Service } from './inputs.ts'
import type { GatewayAddressInit } from './model.ts'
import { type NetworkPlan, networkOfAddress, networkPlan, type WrittenGateway } from './network-plan.ts'
import {
  compareGateways,
  gatewayAddress,
  type NetworkGateway,
  networkGateways,
  networkLabel,
  placeText,
} from './networks.ts'
import type { AmbientObjectGraph } from './object-graph.ts'
import type { AmbientSettings } from './settings.ts'

export interface NetworkGraph {
  readonly gateways: Collection<NetworkGateway>
  readonly gatewaysByNetwork: Index<NetworkGateway>
  /** Gateways of mesh networks that node proxies cannot use, and why. */
  readonly unused: Collection<UnusedGateway>
  /** Empty where neither a label nor mesh networks name it. */
  networkOf(context: ReadContext, cluster: string): string
  /** The network of an endpoint: the one its labels name, else that of its cluster, else the one whose range has its address. */
  networkOfEndpoint(context: ReadContext, endpoint: PlacedEndpoint): string
  /** The gateway for clients on other networks. */
  gatewayInto(context: ReadContext, network: string): GatewayAddressInit | undefined
}

export interface PlacedEndpoint {
  readonly cluster: string
  readonly labels: Readonly<Record<string, string>>
  readonly address: Uint8Array | undefined
}

/** Those that speak for one place into one network. */
interface WrittenInto {
  readonly network: string
  readonly written: WrittenGateway
  /** Clusters of the network, where they are named. */
  readonly clusters: readonly string[]
}

/** Everything by which endpoints are placed. */
interface Placing {
  readonly clusters: ReadonlyMap<string, string>
  readonly plan: NetworkPlan
}

const noPlan: NetworkPlan = { byCluster: new Map(), ranges: [] }

export function createNetworkGraph(
  { graph, collections, meshNetworks }: AmbientObjectGraph,
  { clusterId, systemNamespace, domainSuffix, multiNetwork }: AmbientSettings,
): NetworkGraph {
  const labelled = graph.deriveMany('networks', collections.namespaces, (_, { cluster, object }) => {
    const network = object.metadata.labels?.[networkLabel]
    return object.metadata.name === systemNamespace && network !== undefined
      ? [[cluster, [cluster, network] as const] as const]
      : []
  })
  const plan = graph.singleton('networks/plan', (context) => {
    const written = context.value(meshNetworks)
    return written === undefined ? undefined : networkPlan(written)
  })
  const placing = graph.singleton('networks/placing', (context): Placing => {
    const known = context.value(plan) ?? noPlan
    const clusters = new Map(known.byCluster)
    for (const [cluster, network] of context.list(labelled)) clusters.set(cluster, network)
    return { clusters, plan: known }
  })
  // One read for each of many endpoints.
  const networkOf = (context: ReadContext, cluster: string): string =>
    context.pick(placing.collection, '', (found) => found?.clusters.get(cluster) ?? '')

  const ofGateways = graph.derive('networkGateways/found', collections.gateways, (_, gateway) =>
    networkGateways(gateway, clusterId),
  )
  const byExternalPlace = graph.index('services/external', collections.services, externalPlaces)
  const accountBehind = (context: ReadContext, { cluster, object }: InCluster<Service>): string | undefined => {
    const selector = object.spec?.selector ?? {}
    if (Object.keys(selector).length === 0) return undefined
    const [first] = context
      .list(collections.pods, {
        where: ({ cluster: where, object: { metadata } }) =>
          where === cluster &&
          metadata.namespace === object.metadata.namespace &&
          matchesLabelSelector({ matchLabels: selector }, metadata.labels),
        select: ({ object: { spec } }) => spec?.serviceAccountName || 'default',
      })
      .toSorted()
    return first
  }
  const ofServices = graph.derive('networkGateways/services', collections.services, (context, service) => {
    const network = networkOfGatewayService(service)
    if (!multiNetwork || network === undefined || !takesTunnels(service)) return undefined
    const account = accountBehind(context, service)
    return account === undefined ? undefined : gatewaysOfService(service, network, account)
  })

  const written = graph.deriveMany('networkGateways/written', meshNetworks.collection, (_, { networks }) =>
    Object.entries(networks).flatMap(([network, { endpoints = [], gateways = [] }]) => {
      const clusters = endpoints.flatMap(({ fromRegistry }) => (fromRegistry === undefined ? [] : [fromRegistry]))
      return gateways.map((one, at): readonly [string, WrittenInto] => [
        `${network} ${at}`,
        { network, written: one, clusters },
      ])
    }),
  )
  const resolved = graph.derive('networkGateways/resolved', written, (context, into) => resolve(context, into))
  const usable = graph.derive('networkGateways/usable', resolved, (_, one) =>
    one.kind === 'gateways' ? one.gateways : undefined,
  )

  function resolve(
    context: ReadContext,
    { network, written: one, clusters }: WrittenInto,
  ):
    | { readonly kind: 'gateways'; readonly gateways: readonly NetworkGateway[] }
    | { readonly kind: 'unused'; readonly unused: UnusedGateway } {
    const unused = (reason: string) => ({
      kind: 'unused' as const,
      unused: { network, gateway: writtenText(one), reason },
    })
    if (!multiNetwork) return unused('the mesh is of one network: AMBIENT_ENABLE_MULTI_NETWORK is not set')
    const services = servicesNamed(context, one, clusters)
    if (services.length === 0) {
      return unused(
        'no Service of a known cluster has it: whom to expect there is not known; declare a Gateway of class istio-remote',
      )
    }
    const tunnelling = services.filter(takesTunnels)
    if (tunnelling.length === 0) return unused('its Service has no port 15008, the port of tunnels')
    const gateways = tunnelling.flatMap((service) => {
      const account = accountBehind(context, service)
      if (account === undefined) return []
      const places = one.address === undefined ? undefined : [one.address]
      return gatewaysOfService(service, network, account, places)
    })
    return gateways.length > 0
      ? { kind: 'gateways', gateways }
      : unused('its Service has no pods or no address outside of its cluster')
  }

  function servicesNamed(
    context: ReadContext,
    { registryServiceName, address }: WrittenGateway,
    clusters: readonly string[],
  ): readonly InCluster<Service>[] {
    if (address !== undefined) return context.listBy(byExternalPlace, address).slice(0, 1)
    const named = serviceOfHostname(registryServiceName ?? '', domainSuffix)
    if (named === undefined) return []
    const among = clusters.length === 0 ? [clusterId] : clusters
    return among
      .map((cluster) => context.get(collections.services, objectKey(cluster, named.namespace, named.name)))
      .filter((service) => service !== undefined)
  }

  const each = (name: string, found: Collection<readonly NetworkGateway[]>) =>
    graph.deriveMany(name, found, (_, gateways, key) =>
      gateways.map((one) => [`${name} ${key} ${one.cluster} ${one.network} ${placeText(one)}`, one] as const),
    )
  const ownOrFirst = (found: readonly NetworkGateway[]): NetworkGateway | undefined => {
    const inOrder = found.toSorted(compareGateways)
    return inOrder.find(({ cluster }) => cluster === clusterId) ?? inOrder[0]
  }
  const all = graph.join('networkGateways/all', [
    each('networkGateways/each', ofGateways),
    each('networkGateways/services/each', ofServices),
    each('networkGateways/written/each', usable),
  ])
  const sameGateway = graph.group('networkGateways/gateway', all, (one) => [
    `${one.source} ${one.namespace}/${one.name} ${one.network} ${placeText(one)}`,
  ])
  const distinct = graph.derive('networkGateways/distinct', sameGateway, (_, found) => ownOrFirst(found))
  const samePlace = graph.group('networkGateways/place', distinct, (one) => [`${one.network} ${placeText(one)}`])
  // What is declared as a Gateway counts before what is known of a Service at the same place.
  const gateways = graph.deriveMany('networkGateways', samePlace, (_, found, place) => {
    const declared = found.filter(({ source }) => source === 'Gateway')
    const counting = declared.length > 0 ? declared : [ownOrFirst(found)]
    return counting.flatMap((one) =>
      one === undefined ? [] : [[`${place} ${one.namespace}/${one.name}`, one] as const],
    )
  })
  const gatewaysByNetwork = graph.index('networkGateways/network', gateways, ({ network }) => [network])

  return {
    gateways,
    gatewaysByNetwork,
    unused: graph.derive('networkGateways/unused', resolved, (_, one) =>
      one.kind === 'unused' ? one.unused : undefined,
    ),
    networkOf,
    networkOfEndpoint: (context, { cluster, labels, address }) =>
      labels[networkLabel] ||
      context.pick(placing.collection, '', (found) => {
        const network = found?.clusters.get(cluster)
        if (network || found === undefined || address === undefined) return network ?? ''
        return networkOfAddress(found.plan, address) ?? ''
      }),
    gatewayInto: (context, network) => {
      const [first] = context
        .listBy(gatewaysByNetwork, network, { where: ({ hbonePort }) => hbonePort !== 0 })
        .toSorted(compareGateways)
      return first === undefined ? undefined : gatewayAddress(first)
    },
  }
}
