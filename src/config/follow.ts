// Objects of one kind, from a source into the collection they belong to. A broken object never replaces a good one.
import type { KubeObject, ObjectKey, Resource } from '../api/index.ts'
import type { Informer, ObjectChange } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import { type FieldProblem, type ObjectProblems, type ProblemLog, problemText } from './problems.ts'
import { nameKey } from './source.ts'

/** Where the objects of one kind go. */
export interface ObjectSink<T> {
  set(object: T): void
  delete(key: ObjectKey): void
}

export interface FollowOptions<T extends KubeObject> {
  readonly resource: Resource
  readonly informer: Informer<T>
  readonly sink: ObjectSink<T>
  /** Makes one wave of what `body` changes. */
  readonly transaction: (body: () => void) => void
  /** Objects that are not for us (another revision, say) count as absent. */
  readonly accepts?: (object: T) => boolean
  /** What is wrong with an object, if anything. A broken one is reported, and the last good one stays. */
  readonly problems?: (object: T) => readonly FieldProblem[]
  /** A broken object without a valid one before it is taken as it is: for kinds that restrict, and whose reader lets through less the less it understands. */
  readonly takesBroken?: boolean
  /** Where a field of an object is written, for sources that know. */
  readonly whereIs?: (object: T, field: string) => string | undefined
  /** Told of each object of the source, counted or not. */
  readonly seen?: (change: 'added' | 'updated' | 'deleted') => void
  readonly problemLog?: ProblemLog
  readonly log: Scope
}

export interface FollowedKind {
  /** Looks at every object again: `accepts` answers differently now. */
  recheck(): void
  /** Ends it. What the sink holds stays. */
  stop(): void
}

const reports: Readonly<Record<ObjectProblems['served'], string>> = {
  'the last valid one': 'an invalid object is not taken; the last valid one stays',
  nothing: 'an invalid object is not taken',
  'as the narrowest it may mean': 'an invalid object restricts more than it may have meant to, until it is mended',
}

/** Feeds the sink until it is stopped. */
export function followInformer<T extends KubeObject>(options: FollowOptions<T>): FollowedKind {
  const { sink, log, resource } = options
  const reported = new Map<string, string>()
  const valid = new Set<string>()

  function put(object: T): void {
    if (options.accepts?.(object) === false) {
      remove(object)
      return
    }
    const problems = options.problems?.(object) ?? []
    const name = nameKey(object.metadata)
    if (problems.length === 0) {
      mended(name, object)
      valid.add(name)
      sink.set(object)
      return
    }
    const served = valid.has(name)
      ? 'the last valid one'
      : options.takesBroken === true
        ? 'as the narrowest it may mean'
        : 'nothing'
    if (served === 'as the narrowest it may mean') sink.set(object)
    report(name, object, problems, served)
  }

  function report(name: string, object: T, problems: readonly FieldProblem[], served: ObjectProblems['served']): void {
    const places = problems.map((problem) => {
      const where = options.whereIs?.(object, problem.field)
      return `${where === undefined ? '' : `${where}: `}${problemText(problem)}`
    })
    const text = places.join('; ')
    if (reported.get(name) === text) return
    reported.set(name, text)
    log.error(reports[served], { object: `${resource.kind} ${name}`, problems: text })
    const where = options.whereIs?.(object, problems[0]?.field ?? '')
    options.problemLog?.set({ resource, object, problems, served, ...(where === undefined ? {} : { where }) })
  }

  function mended(name: string, object: T): void {
    if (reported.delete(name)) options.problemLog?.clear(resource, object)
  }

  function remove(object: T): void {
    const name = nameKey(object.metadata)
    mended(name, object)
    valid.delete(name)
    sink.delete(object.metadata)
  }

  function take(change: ObjectChange<T>): void {
    options.seen?.(change.kind)
    if (change.kind === 'deleted') remove(change.object)
    else put(change.object)
  }

  const stop = options.informer.subscribe((changes) => {
    options.transaction(() => {
      for (const change of changes) take(change)
    })
  })
  return {
    recheck: () =>
      options.transaction(() => {
        for (const object of options.informer.list()) put(object)
      }),
    stop,
  }
}
