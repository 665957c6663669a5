// The objects of the cluster that holds the mesh's configuration, followed into the inputs of the ambient index and into the index of pods.
import { type KubeObject, type Resource, resources } from '../api/index.ts'
import { createPodIndex, type PodIndex, podViewOf } from '../ca/index.ts'
import {
  type ConfigSource,
  type FindProblems,
  type FollowedKind,
  type FollowOptions,
  followInformer,
  type ProblemLog,
} from '../config/index.ts'
import {
  type AmbientInputs,
  type AmbientKind,
  type AmbientObjects,
  type ambientKinds,
  createKeptFields,
} from '../discovery/ambient/index.ts'
import type { Informer, KubeClient } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import type { Revisions } from './revisions.ts'

export interface ClusterOptions {
  readonly client: KubeClient
  /** Where the kinds come from that people write. */
  readonly configuration: ConfigSource
  readonly whereIs: (object: KubeObject, field: string) => string | undefined
  readonly clusterId: string
  readonly revisions: Revisions
  readonly inputs: AmbientInputs
  readonly problems: FindProblems
  readonly problemLog: ProblemLog
  readonly inbound: Inbound
  readonly log: Scope
}

/** Told of each object that came in. */
export type Inbound = (kind: AmbientKind, change: 'added' | 'updated' | 'deleted') => void

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
export const configurationKinds = [
  'serviceEntries',
  'workloadEntries',
  'authorizationPolicies',
  'peerAuthentications',
  'gateways',
  'gatewayClasses',
] as const satisfies readonly AmbientKind[]

const ofConfiguration: ReadonlySet<AmbientKind> = new Set(configurationKinds)

/** A policy that cannot be read must not leave open what it was to close: the index reads it as the narrowest it may mean. */
const restricting: ReadonlySet<AmbientKind> = new Set(['authorizationPolicies', 'peerAuthentications'])

/** What every kind of every cluster is followed with. */
export function followOptions<K extends AmbientKind>(
  kind: K,
  options: Pick<ClusterOptions, 'inputs' | 'problems' | 'problemLog' | 'inbound' | 'log' | 'clusterId'>,
): Omit<FollowOptions<AmbientObjects[K]>, 'informer'> {
  const { inputs, log } = options
  const resource: Resource = resources[kind]
  return {
    resource,
    sink: inputs.feed(options.clusterId, kind),
    transaction: (body) => inputs.graph.transaction(body),
    ...(ofConfiguration.has(kind)
      ? { problems: (object: KubeObject) => options.problems(resource, object), problemLog: options.problemLog }
      : {}),
    takesBroken: restricting.has(kind),
    seen: (change) => options.inbound(kind, change),
    log,
  }
}

/** Starts following at once. */
export function followCluster(options: ClusterOptions): Cluster {
  const { client, configuration, revisions, whereIs } = options
  const stack = new AsyncDisposableStack()
  const revisioned: FollowedKind[] = []
  const kept = createKeptFields()

  function follow<K extends AmbientKind>(kind: K): Informer<AmbientObjects[K]> {
    const keep = kept[kind]
    const informer = stack.use(
      ofConfiguration.has(kind)
        ? configuration.informer<AmbientObjects[K]>(resources[kind])
        : client.informer<AmbientObjects[K]>(resources[kind], keep === undefined ? {} : { keep }),
    )
    const followed = followInformer<AmbientObjects[K]>({
      ...followOptions(kind, options),
      informer,
      whereIs,
      ...(ofRevision.has(kind) ? { accepts: (object: KubeObject) => revisions.owns(object) } : {}),
    })
    stack.defer(() => followed.stop())
    if (ofRevision.has(kind)) revisioned.push(followed)
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
  stack.defer(
    revisions.subscribe(() =>
      options.inputs.graph.transaction(() => {
        for (const kind of revisioned) kind.recheck()
      }),
    ),
  )

  const pods = createPodIndex()
  stack.defer(indexPods(informers.pods, pods))
  return {
    informers,
    pods,
    synced: Promise.all(Object.values(informers).map(({ synced }) => synced)).then(() => undefined),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

/** Keeps the index current until the returned function is called. */
export function indexPods(informer: Informer<AmbientObjects['pods']>, pods: PodIndex): () => void {
  return informer.subscribe((changes) => {
    for (const { kind, object } of changes) {
      if (kind === 'deleted') pods.delete(object.metadata.namespace ?? '', object.metadata.name)
      else pods.set(podViewOf(object))
    }
  })
}
