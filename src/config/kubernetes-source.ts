// Objects of one cluster, from the informers of its API server into the collections they belong to.
import type { KubeObject, ObjectKey } from '../api/index.ts'
import type { Informer, ObjectChange } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'

/** Where the objects of one kind go. */
export interface ObjectSink<T> {
  set(object: T): void
  delete(key: ObjectKey): void
}

export interface FollowOptions<T extends KubeObject> {
  readonly informer: Informer<T>
  readonly sink: ObjectSink<T>
  /** Makes one wave of what `body` changes. */
  readonly transaction: (body: () => void) => void
  /** Objects that are not for us (another revision, say) count as absent. */
  readonly accepts?: (object: T) => boolean
  /** What is wrong with an object, if anything. A broken one is reported, and the last good one stays. */
  readonly problems?: (object: T) => readonly string[]
  /** A broken object without a valid one before it is taken as it is: for kinds that restrict, and whose reader lets through less the less it understands. */
  readonly takesBroken?: boolean
  readonly log: Scope
}

const notTaken = 'an invalid object is not taken; the last valid one stays'
const takenBroken = 'an invalid object restricts more than it may have meant to, until it is mended'

/** Feeds the sink until the returned function is called. */
export function followInformer<T extends KubeObject>(options: FollowOptions<T>): () => void {
  const { sink, log } = options
  const reported = new Map<string, string>()
  const valid = new Set<string>()

  function put(object: T): void {
    if (options.accepts?.(object) === false) {
      remove(object)
      return
    }
    const problems = options.problems?.(object) ?? []
    const name = nameOf(object)
    if (problems.length === 0) {
      reported.delete(name)
      valid.add(name)
      sink.set(object)
      return
    }
    const isTaken = options.takesBroken === true && !valid.has(name)
    if (isTaken) sink.set(object)
    const text = problems.join('; ')
    if (reported.get(name) !== text) log.error(isTaken ? takenBroken : notTaken, { object: name, problems: text })
    reported.set(name, text)
  }

  function remove(object: T): void {
    const name = nameOf(object)
    reported.delete(name)
    valid.delete(name)
    sink.delete(object.metadata)
  }

  function take(change: ObjectChange<T>): void {
    if (change.kind === 'deleted') remove(change.object)
    else put(change.object)
  }

  return options.informer.subscribe((changes) => {
    options.transaction(() => {
      for (const change of changes) take(change)
    })
  })
}

function nameOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata.namespace ?? ''}/${metadata.name}`
}
