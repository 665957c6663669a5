// The objects of the cluster, followed into the inputs of the ambient index and into the index of pods.
import { type KubeObject, type Resource, resources } from '../api/index.ts'
import { createPodIndex, type PodIndex, podViewOf } from '../ca/index.ts'
import { followInformer } from '../config/index.ts'
import {
  type AmbientInputs,
  type AmbientKind,
  type AmbientObjects,
  type ambientKinds,
  createKeptFields,
} from '../discovery/ambient/index.ts'
import type { Informer, KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'

export interface ClusterOptions {
  readonly client: KubeClient
  readonly clusterId: string
  /** Objects labelled with another revision are not ours. */
  readonly revision: string
  readonly inputs: AmbientInputs
  readonly problems: (resource: Resource, object: KubeObject) => readonly string[]
  readonly log: Scope
}

export interface Cluster extends AsyncDisposable {
  readonly informers: { readonly [K in AmbientKind]: Informer<AmbientObjects[K]> }
  readonly pods: PodIndex
  /** Resolves when every kind has been listed once. */
  readonly synced: Promise<void>
}

const ofRevision: ReadonlySet<AmbientKind> = new Set([
  'authorizationPolicies',
  'peerAuthentications',
  'serviceEntries',
  'workloadEntries',
])

/** Those that people write, whose schema the API server may not know. */
const checked: ReadonlySet<AmbientKind> = new Set([
  'authorizationPolicies',
  'peerAuthentications',
  'serviceEntries',
  'workloadEntries',
  'gateways',
  'gatewayClasses',
])

/** A policy that cannot be read must not leave open what it was to close: the index reads it as the narrowest it may mean. */
const restricting: ReadonlySet<AmbientKind> = new Set(['authorizationPolicies', 'peerAuthentications'])

/** Starts following at once. */
export function followCluster(options: ClusterOptions): Cluster {
  const { client, inputs, log } = options
  const stack = new AsyncDisposableStack()
  const kept = createKeptFields()

  function follow<K extends AmbientKind>(kind: K): Informer<AmbientObjects[K]> {
    const resource = resources[kind]
    const keep = kept[kind]
    const informer = stack.use(client.informer<AmbientObjects[K]>(resource, keep === undefined ? {} : { keep }))
    const stop = followInformer<AmbientObjects[K]>({
      informer,
      sink: inputs.feed(options.clusterId, kind),
      transaction: (body) => inputs.graph.transaction(body),
      ...(ofRevision.has(kind) ? { accepts: (object: KubeObject) => isOfRevision(object, options.revision) } : {}),
      ...(checked.has(kind) ? { problems: (object: KubeObject) => options.problems(resource, object) } : {}),
      takesBroken: restricting.has(kind),
      log,
    })
    stack.defer(stop)
    return informer
  }

  const informers = {
    namespaces: follow('namespaces'),
    nodes: follow('nodes'),
    pods: follow('pods'),
    services: follow('services'),
    endpointSlices: follow('endpointSlices'),
    gateways: follow('gateways'),
    gatewayClasses: follow('gatewayClasses'),
    serviceEntries: follow('serviceEntries'),
    workloadEntries: follow('workloadEntries'),
    authorizationPolicies: follow('authorizationPolicies'),
    peerAuthentications: follow('peerAuthentications'),
  } satisfies { [K in keyof typeof ambientKinds]: Informer<AmbientObjects[K]> }

  const pods = createPodIndex()
  stack.defer(
    informers.pods.subscribe((changes) => {
      for (const { kind, object } of changes) {
        if (kind === 'deleted') pods.delete(object.metadata.namespace ?? '', object.metadata.name)
        else pods.set(podViewOf(object))
      }
    }),
  )

  return {
    informers,
    pods,
    synced: Promise.all(Object.values(informers).map(({ synced }) => synced)).then(() => undefined),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

function isOfRevision({ metadata }: KubeObject, revision: string): boolean {
  const label = metadata.labels?.['istio.io/rev'] ?? ''
  return label === '' || label === revision
}
