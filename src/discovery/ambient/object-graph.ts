// The objects that count: those in discovered namespaces and of this control plane's revision.
import { type KubeObject, matchesLabelSelector } from '../../api/index.ts'
import type { Collection, Graph, ReadContext } from '../../collections/index.ts'
import {
  type AmbientInputs,
  type AmbientKind,
  type AmbientObjects,
  ambientKinds,
  type InCluster,
  objectKey,
} from './inputs.ts'
import { type AmbientSettings, defaultRootNamespace } from './settings.ts'

export interface AmbientObjectGraph extends Pick<AmbientInputs, 'meshConfig' | 'meshNetworks' | 'trustDomains'> {
  readonly graph: Graph
  readonly collections: { readonly [K in AmbientKind]: Collection<InCluster<AmbientObjects[K]>> }
}

export function createObjectGraph(inputs: AmbientInputs, settings: AmbientSettings): AmbientObjectGraph {
  const { graph, collections, meshConfig } = inputs
  const selectors = graph.singleton('discoverySelectors', (context) =>
    context.pick(meshConfig.collection, '', (config) =>
      (config?.discoverySelectors ?? []).length === 0 ? undefined : config?.discoverySelectors,
    ),
  )
  const ignoredNamespaces = graph.derive('ignoredNamespaces', collections.namespaces, (context, { object }) => {
    const wanted = context.value(selectors)
    const root = context.pick(meshConfig.collection, '', (config) => config?.rootNamespace || defaultRootNamespace)
    // The policies of the whole mesh are in the root namespace: no selector may hide them.
    if (wanted === undefined || [root, settings.systemNamespace].includes(object.metadata.name)) return undefined
    return wanted.some((selector) => matchesLabelSelector(selector, object.metadata.labels)) ? undefined : true
  })
  const isDiscovered = (context: ReadContext, cluster: string, { metadata: { namespace } }: KubeObject): boolean =>
    namespace === undefined || context.get(ignoredNamespaces, objectKey(cluster, undefined, namespace)) === undefined
  const isReadFrom = (kind: AmbientKind, cluster: string): boolean =>
    cluster === settings.clusterId || (settings.multiNetwork && ambientKinds[kind] === 'every-cluster')
  const isOfRevision = ({ metadata }: KubeObject): boolean => {
    const revision = metadata.labels?.['istio.io/rev'] ?? ''
    return settings.revision === undefined || revision === '' || revision === settings.revision
  }
  const counting = <K extends AmbientKind>(kind: K, revisioned: boolean): Collection<InCluster<AmbientObjects[K]>> => {
    const all: Collection<InCluster<AmbientObjects[K]>> = collections[kind]
    return graph.derive(
      kind,
      all,
      (context, value) =>
        isReadFrom(kind, value.cluster) &&
        (!revisioned || isOfRevision(value.object)) &&
        isDiscovered(context, value.cluster, value.object)
          ? value
          : undefined,
      { equals: Object.is },
    )
  }
  return {
    graph,
    meshConfig,
    meshNetworks: inputs.meshNetworks,
    trustDomains: inputs.trustDomains,
    collections: {
      namespaces: collections.namespaces,
      nodes: collections.nodes,
      gatewayClasses: collections.gatewayClasses,
      pods: counting('pods', false),
      services: counting('services', false),
      endpointSlices: counting('endpointSlices', false),
      gateways: counting('gateways', false),
      serviceEntries: counting('serviceEntries', true),
      workloadEntries: counting('workloadEntries', true),
      authorizationPolicies: counting('authorizationPolicies', true),
      peerAuthentications: counting('peerAuthentications', true),
    },
  }
}
