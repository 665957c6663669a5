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
import type { AmbientSettings } from './settings.ts'

export interface AmbientObjectGraph extends Pick<AmbientInputs, 'meshConfig' | 'meshNetworks' | 'trustDomains'> {
  readonly graph: Graph
  readonly collections: { readonly [K in AmbientKind]: Collection<InCluster<AmbientObjects[K]>> }
}

export function createObjectGraph(inputs: AmbientInputs, settings: AmbientSettings): AmbientObjectGraph {
  const { graph, collections, meshConfig } = inputs
  /** Absent where no selectors are set: every namespace is looked at. */
  const discovery = graph.singleton('discoverySelectors', (context) =>
    context.pick(meshConfig.collection, '', (config) => {
      const selectors = config?.discoverySelectors ?? []
      if (selectors.length === 0) return undefined
      // The policies of the whole mesh are in the root namespace: no selector may hide them.
      return { selectors, always: [config?.rootNamespace || settings.systemNamespace, settings.systemNamespace] }
    }),
  )
  const discovered = graph.derive('discoveredNamespaces', collections.namespaces, (context, { object }) =>
    context.value(discovery)?.selectors.some((selector) => matchesLabelSelector(selector, object.metadata.labels))
      ? true
      : undefined,
  )
  const isDiscovered = (context: ReadContext, cluster: string, { metadata: { namespace } }: KubeObject): boolean => {
    if (namespace === undefined) return true
    const wanted = context.value(discovery)
    if (wanted === undefined || wanted.always.includes(namespace)) return true
    // A namespace that is not known, or not any more, meets no selector.
    return context.get(discovered, objectKey(cluster, undefined, namespace)) === true
  }
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
