// What the ambient index is computed from: the objects of every cluster, mesh config, settings.
import { isDeepStrictEqual } from 'node:util'
import type {
  NamespaceSpec,
  NamespaceStatus,
  NodeSpec,
  NodeStatus,
  PodSpec,
  PodStatus,
  ServiceSpec,
  ServiceStatus,
} from 'kubernetes-types/core/v1.js'
import type { EndpointSlice as PlainEndpointSlice } from 'kubernetes-types/discovery/v1.js'
import type {
  AuthorizationPolicy,
  Gateway,
  GatewayClass,
  KubeObject,
  LabelSelector,
  ObjectKey,
  PeerAuthentication,
  ServiceEntry,
  WorkloadEntry,
} from '../../api/index.ts'
import type { Graph, InputCollection, InputSingleton } from '../../collections/index.ts'
import type { AmbientMeshNetworks } from './network-plan.ts'
import { withoutNulls } from './nulls.ts'

export type Pod = KubeObject<PodSpec, PodStatus>
export type Service = KubeObject<ServiceSpec, ServiceStatus>
export type Node = KubeObject<NodeSpec, NodeStatus>
export type Namespace = KubeObject<NamespaceSpec, NamespaceStatus>
export type EndpointSlice = KubeObject & Pick<PlainEndpointSlice, 'addressType' | 'endpoints' | 'ports'>

/** The kinds read, and whether from every cluster or only from the one that holds the mesh's configuration. */
export const ambientKinds = {
  namespaces: 'every-cluster',
  nodes: 'every-cluster',
  pods: 'every-cluster',
  services: 'every-cluster',
  endpointSlices: 'every-cluster',
  gateways: 'every-cluster',
  gatewayClasses: 'config-cluster',
  serviceEntries: 'config-cluster',
  workloadEntries: 'config-cluster',
  authorizationPolicies: 'config-cluster',
  peerAuthentications: 'config-cluster',
} as const

export type AmbientKind = keyof typeof ambientKinds

const policies: ReadonlySet<AmbientKind> = new Set(['authorizationPolicies', 'peerAuthentications'])

export interface AmbientObjects {
  readonly namespaces: Namespace
  readonly nodes: Node
  readonly pods: Pod
  readonly services: Service
  readonly endpointSlices: EndpointSlice
  readonly gateways: Gateway
  readonly gatewayClasses: GatewayClass
  readonly serviceEntries: ServiceEntry
  readonly workloadEntries: WorkloadEntry
  readonly authorizationPolicies: AuthorizationPolicy
  readonly peerAuthentications: PeerAuthentication
}

/** An object and the cluster it was read from. */
export interface InCluster<T> {
  readonly cluster: string
  readonly object: T
}

/** The fields of mesh config that the index reads. */
export interface AmbientMeshConfig {
  /** Default: the namespace of the control plane. */
  readonly rootNamespace?: string
  /** Default `cluster.local`. */
  readonly trustDomain?: string
  /** Namespaces that meet none of these are not looked at; empty: all are. */
  readonly discoverySelectors?: readonly LabelSelector[]
  readonly serviceScopeConfigs?: readonly {
    readonly namespaceSelector?: LabelSelector
    readonly servicesSelector?: LabelSelector
    readonly scope?: string
  }[]
  readonly serviceEntryVisibility?: {
    readonly policies?: readonly {
      readonly matchingRules?: readonly { readonly namespaceSelector?: LabelSelector }[]
      readonly visibility?: string
    }[]
    readonly defaultVisibility?: string
  }
}

/** One kind of object of one cluster. */
export interface ObjectFeed<T> {
  set(object: T): void
  delete(key: ObjectKey): void
  /** Makes the cluster's objects of this kind exactly these. */
  replace(objects: Iterable<T>): void
}

export interface AmbientInputs {
  readonly graph: Graph
  readonly collections: { readonly [K in AmbientKind]: InputCollection<InCluster<AmbientObjects[K]>> }
  readonly meshConfig: InputSingleton<AmbientMeshConfig>
  readonly meshNetworks: InputSingleton<AmbientMeshNetworks>
  /** Trust domains of other clusters, by cluster; those of the mesh where there is none. */
  readonly trustDomains: InputCollection<string>
  /** Where the objects of one kind and cluster go. Several changes in one `graph.transaction` make one wave. */
  feed<K extends AmbientKind>(cluster: string, kind: K): ObjectFeed<AmbientObjects[K]>
  /** Every kind of every cluster known at the start, and mesh config, have been read once. */
  markSynced(): void
  /** Removes everything read from a cluster. */
  removeCluster(cluster: string): void
}

/** Makes the empty inputs of an ambient index in a graph of collections. */
export function createAmbientInputs(graph: Graph): AmbientInputs {
  const input = <K extends AmbientKind>(kind: K) =>
    // Nodes and pods are updated all the time, mostly in what is not read here.
    graph.input<InCluster<AmbientObjects[K]>>(
      `inputs/${kind}`,
      kind === 'pods' || kind === 'nodes' ? { equals: sameButVersion } : {},
    )
  const collections: AmbientInputs['collections'] = {
    namespaces: input('namespaces'),
    nodes: input('nodes'),
    pods: input('pods'),
    services: input('services'),
    endpointSlices: input('endpointSlices'),
    gateways: input('gateways'),
    gatewayClasses: input('gatewayClasses'),
    serviceEntries: input('serviceEntries'),
    workloadEntries: input('workloadEntries'),
    authorizationPolicies: input('authorizationPolicies'),
    peerAuthentications: input('peerAuthentications'),
  }
  const meshConfig = graph.inputSingleton<AmbientMeshConfig>('inputs/meshConfig')
  const meshNetworks = graph.inputSingleton<AmbientMeshNetworks>('inputs/meshNetworks')
  const trustDomains = graph.input<string>('inputs/trustDomains')

  const feed = <K extends AmbientKind>(cluster: string, kind: K): ObjectFeed<AmbientObjects[K]> => {
    const collection: InputCollection<InCluster<AmbientObjects[K]>> = collections[kind]
    const put = (object: AmbientObjects[K]): void =>
      collection.set(objectKey(cluster, object.metadata.namespace, object.metadata.name), {
        cluster,
        // What cannot be read of the spec of a policy must close it: it is taken as it is written.
        object: policies.has(kind) ? withCleanMetadata(object) : withoutNulls(object),
      })
    return {
      set: put,
      delete: ({ namespace, name }) => collection.delete(objectKey(cluster, namespace, name)),
      replace: (objects) =>
        graph.transaction(() => {
          removeAll(collection, cluster)
          for (const object of objects) put(object)
        }),
    }
  }
  return {
    graph,
    collections,
    meshConfig,
    meshNetworks,
    trustDomains,
    feed,
    markSynced: () =>
      graph.transaction(() => {
        for (const collection of Object.values(collections)) collection.markSynced()
        for (const input of [meshConfig, meshNetworks, trustDomains]) input.markSynced()
      }),
    removeCluster: (cluster) =>
      graph.transaction(() => {
        for (const collection of Object.values<Removable>(collections)) removeAll(collection, cluster)
        trustDomains.delete(cluster)
      }),
  }
}

/** The key of an object in its input collection. */
export function objectKey(cluster: string, namespace: string | undefined, name: string): string {
  return `${cluster}/${namespace ?? ''}/${name}`
}

function withCleanMetadata<T extends KubeObject>(object: T): T {
  const metadata = withoutNulls(object.metadata)
  return metadata === object.metadata ? object : { ...object, metadata }
}

/** Whether nothing but the version differs. */
function sameButVersion(a: InCluster<KubeObject>, b: InCluster<KubeObject>): boolean {
  const { metadata: before, ...restBefore } = a.object
  const { metadata: after, ...restAfter } = b.object
  return (
    a.cluster === b.cluster &&
    isDeepStrictEqual({ ...before, resourceVersion: '' }, { ...after, resourceVersion: '' }) &&
    isDeepStrictEqual(restBefore, restAfter)
  )
}

type Removable = Pick<InputCollection<unknown>, 'keys' | 'delete'>

/** Removes the objects of a cluster, also those that have been read since the last wave. */
function removeAll(collection: Removable, cluster: string): void {
  for (const key of collection.keys()) if (clusterOf(key) === cluster) collection.delete(key)
}

/** The cluster in the key of an object: names and namespaces have no slash in them. */
function clusterOf(key: string): string {
  return key.slice(0, key.lastIndexOf('/', key.lastIndexOf('/') - 1))
}
