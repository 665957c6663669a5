// What all controllers share: the client, and one informer for each kind that they watch.
import { type KubeObject, type Resource, resources } from '../../api/index.ts'
import type { Informer, KubeClient, ListOptions } from '../../kube/index.ts'
import type { Scope } from '../../observability/index.ts'
import type {
  DaemonSet,
  Deployment,
  DisruptionBudget,
  EndpointSlice,
  Job,
  Namespace,
  Node,
  Pod,
  ReplicaSet,
  Service,
  SigningRequest,
  StatefulSet,
} from './objects.ts'
import { createOwned, type Owned } from './owned.ts'

export interface Cluster extends AsyncDisposable {
  readonly client: KubeClient
  readonly log: Scope
  readonly pods: Informer<Pod>
  readonly ownedPods: Owned<Pod>
  readonly nodes: Informer<Node>
  readonly services: Informer<Service>
  readonly namespaces: Informer<Namespace>
  readonly serviceAccounts: Informer<KubeObject>
  /** The ConfigMaps named kube-root-ca.crt. */
  readonly rootCertificates: Informer<KubeObject & { data?: Record<string, string> }>
  readonly endpointSlices: Informer<EndpointSlice>
  readonly ownedEndpointSlices: Owned<EndpointSlice>
  readonly deployments: Informer<Deployment>
  readonly replicaSets: Informer<ReplicaSet>
  readonly ownedReplicaSets: Owned<ReplicaSet>
  readonly statefulSets: Informer<StatefulSet>
  readonly daemonSets: Informer<DaemonSet>
  readonly jobs: Informer<Job>
  readonly disruptionBudgets: Informer<DisruptionBudget>
  readonly signingRequests: Informer<SigningRequest>
  /** Heartbeats of nodes. */
  readonly nodeLeases: Informer<KubeObject<{ renewTime?: string; leaseDurationSeconds?: number }>>
}

export function createCluster(client: KubeClient, log: Scope): Cluster {
  const informers: Informer<KubeObject>[] = []
  function watch<T extends KubeObject>(resource: Resource, options?: ListOptions): Informer<T> {
    const informer = client.informer<T>(resource, options)
    informers.push(informer as unknown as Informer<KubeObject>)
    return informer
  }
  const pods = watch<Pod>(resources.pods)
  const replicaSets = watch<ReplicaSet>(resources.replicaSets)
  const endpointSlices = watch<EndpointSlice>(resources.endpointSlices)
  const [ownedPods, ownedReplicaSets] = [createOwned(pods), createOwned(replicaSets)]
  const ownedEndpointSlices = createOwned(endpointSlices)
  return {
    client,
    log,
    pods,
    ownedPods,
    replicaSets,
    ownedReplicaSets,
    nodes: watch(resources.nodes),
    services: watch(resources.services),
    namespaces: watch(resources.namespaces),
    serviceAccounts: watch(resources.serviceAccounts),
    rootCertificates: watch(resources.configMaps, { fieldSelector: 'metadata.name=kube-root-ca.crt' }),
    endpointSlices,
    ownedEndpointSlices,
    deployments: watch(resources.deployments),
    statefulSets: watch(resources.statefulSets),
    daemonSets: watch(resources.daemonSets),
    jobs: watch(resources.jobs),
    disruptionBudgets: watch(resources.podDisruptionBudgets),
    signingRequests: watch(resources.certificateSigningRequests),
    nodeLeases: watch(resources.leases, { namespace: 'kube-node-lease' }),
    async [Symbol.asyncDispose]() {
      ownedPods[Symbol.dispose]()
      ownedReplicaSets[Symbol.dispose]()
      ownedEndpointSlices[Symbol.dispose]()
      await Promise.all(informers.map((informer) => informer[Symbol.asyncDispose]()))
    },
  }
}

/** Resolves when everything has been listed once. */
export async function clusterSynced(cluster: Cluster): Promise<void> {
  const { pods, nodes, services, namespaces, serviceAccounts, rootCertificates, endpointSlices } = cluster
  const { deployments, replicaSets, statefulSets, daemonSets, jobs, disruptionBudgets, signingRequests, nodeLeases } =
    cluster
  await Promise.all(
    [
      pods,
      nodes,
      services,
      namespaces,
      serviceAccounts,
      rootCertificates,
      endpointSlices,
      deployments,
      replicaSets,
      statefulSets,
      daemonSets,
      jobs,
      disruptionBudgets,
      signingRequests,
      nodeLeases,
    ].map((informer) => informer.synced),
  )
}
