// The Istio kinds that nothing here computes from yet: read, checked, shown, and passed on to other control planes.
import { istioResources, type KubeObject, type Resource } from '../api/index.ts'
import type { Graph, InputCollection } from '../collections/index.ts'
import { type ConfigSource, type FindProblems, followInformer, type ProblemLog } from '../config/index.ts'
import type { Informer } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import { configurationKinds } from './cluster.ts'
import type { Revisions } from './revisions.ts'

export interface OtherKind {
  readonly resource: Resource
  readonly collection: InputCollection<KubeObject>
  readonly informer: Informer<KubeObject>
}

export interface OtherConfiguration extends AsyncDisposable {
  readonly kinds: readonly OtherKind[]
  /** The informer of one of these kinds. */
  informer<T extends KubeObject>(resource: Resource): Informer<T>
  /** Resolves when every kind has been listed once. */
  readonly synced: Promise<void>
}

export interface OtherConfigurationOptions {
  readonly graph: Graph
  readonly configuration: ConfigSource
  readonly whereIs: (object: KubeObject, field: string) => string | undefined
  readonly revisions: Revisions
  readonly problems: FindProblems
  readonly problemLog: ProblemLog
  readonly log: Scope
}

const computed: ReadonlySet<string> = new Set(configurationKinds)

export const otherKinds: readonly Resource[] = Object.entries(istioResources)
  .filter(([name]) => !computed.has(name))
  .map(([, resource]) => resource)

/** Starts following at once. */
export function followOtherConfiguration(options: OtherConfigurationOptions): OtherConfiguration {
  const { graph, configuration, revisions, whereIs, problemLog, log } = options
  const stack = new AsyncDisposableStack()
  const reading: Promise<void>[] = []

  const kinds = otherKinds.map((resource): OtherKind => {
    const collection = graph.input<KubeObject>(`configuration/${resource.plural}.${resource.group}`)
    const informer = stack.use(configuration.informer<KubeObject>(resource))
    const keyOf = ({ namespace = '', name }: { readonly namespace?: string; readonly name: string }) =>
      `${namespace}/${name}`
    const followed = followInformer<KubeObject>({
      resource,
      informer,
      sink: {
        set: (object) => collection.set(keyOf(object.metadata), object),
        delete: (key) => collection.delete(keyOf(key)),
      },
      transaction: (body) => graph.transaction(body),
      accepts: (object) => revisions.owns(object),
      problems: (object) => options.problems(resource, object),
      problemLog,
      whereIs,
      log,
    })
    stack.defer(() => followed.stop())
    stack.defer(revisions.subscribe(() => followed.recheck()))
    reading.push(informer.synced.then(() => collection.markSynced()))
    return { resource, collection, informer }
  })
  const synced = Promise.all(reading).then(() => undefined)
  synced.catch(() => {})
  return {
    kinds,
    informer<T extends KubeObject>(resource: Resource) {
      const kind = kinds.find((one) => one.resource.plural === resource.plural && one.resource.group === resource.group)
      if (kind === undefined) throw new TypeError(`${resource.plural}.${resource.group} is not read here`)
      // An informer holds the objects of its kind alone.
      return kind.informer as Informer<T>
    },
    synced,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}
