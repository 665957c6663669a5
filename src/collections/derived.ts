// Derived collections: a pure function, run again for the keys whose source value or recorded reads changed.
import { RunContext } from './context.ts'
import type { GraphEngine } from './engine.ts'
import type { DerivedOptions } from './options.ts'
import { erased, type ShouldPause, Store } from './store.ts'
import type { ReadContext } from './types.ts'

/** One value for each source value, under its key; without a source, one value under the empty key. */
export function createDerived<I, O>(
  graph: GraphEngine,
  name: string,
  source: Store<I> | undefined,
  compute: (context: ReadContext, value: I, key: string) => O | undefined,
  options: DerivedOptions<O>,
): Store<O> {
  const kind = source === undefined ? 'singleton' : 'derived'
  const store: Store<O> = new Store<O>(graph, name, {
    kind,
    equals: options.equals,
    settle: (shouldPause) => runs.settle(shouldPause),
  })
  const runs = createRuns(graph, erased(store), {
    source: source && erased(source),
    compute: (context, key) => store.write(key, compute(context, source?.latest(key) as I, key)),
    dropped: (key) => store.write(key, undefined),
  })
  return store
}

/** Any number of keyed values for each source value. */
export function createDerivedMany<I, O>(
  graph: GraphEngine,
  name: string,
  source: Store<I>,
  compute: (context: ReadContext, value: I, key: string) => Iterable<readonly [string, O]>,
  options: DerivedOptions<O>,
): Store<O> {
  const store: Store<O> = new Store<O>(graph, name, {
    kind: 'derived-many',
    equals: options.equals,
    settle: (shouldPause) => {
      if (!runs.settle(shouldPause)) return false
      for (const key of touched) {
        touched.delete(key)
        publish(key)
        if (touched.size > 0 && shouldPause()) return false
      }
      return true
    },
  })
  const outputs = new Map<string, Map<string, O>>()
  const claims = new Map<string, Set<string>>()
  /** Output keys to publish when all runs are done, so that a key that moves between inputs changes at most once. */
  const touched = new Set<string>()

  const publish = (key: string): void => {
    const [first] = [...(claims.get(key) ?? [])].sort()
    store.write(key, first === undefined ? undefined : outputs.get(first)?.get(key))
  }
  const put = (inputKey: string, next: Map<string, O>): void => {
    const before = outputs.get(inputKey)
    if (next.size === 0) outputs.delete(inputKey)
    else outputs.set(inputKey, next)
    for (const key of before?.keys() ?? []) {
      if (next.has(key)) continue
      const claimants = claims.get(key)
      claimants?.delete(inputKey)
      if (claimants?.size === 0) claims.delete(key)
      touched.add(key)
    }
    for (const key of next.keys()) {
      const claimants = claims.get(key) ?? new Set()
      const isNew = !claimants.has(inputKey)
      claims.set(key, claimants.add(inputKey))
      touched.add(key)
      if (isNew && claimants.size > 1) {
        graph.report({ kind: 'duplicate-key', collection: name, key, inputs: [...claimants].sort() })
      }
    }
  }
  const runs = createRuns(graph, erased(store), {
    source: erased(source),
    compute: (context, inputKey) => {
      const next = new Map<string, O>()
      for (const [key, value] of compute(context, source.latest(inputKey) as I, inputKey)) {
        if (!next.has(key)) next.set(key, value)
        else graph.report({ kind: 'duplicate-key', collection: name, key, inputs: [inputKey] })
      }
      put(inputKey, next)
    },
    dropped: (inputKey) => put(inputKey, new Map()),
  })
  return store
}

export interface Runs {
  /** Runs what is dirty; false when it stopped before the end. */
  settle(shouldPause: ShouldPause): boolean
  /** Runs one key now and from now on whenever something it read changes. */
  start(key: string): void
  stop(key: string): void
}

/** The runs of a derivation: one a source key, or (without a source) one a started key. */
export function createRuns(
  graph: GraphEngine,
  store: Store<unknown>,
  options: {
    readonly source: Store<unknown> | undefined
    readonly compute: (context: ReadContext, key: string) => void
    readonly dropped: (key: string) => void
    /** Without a source: whether keys are started one by one. */
    readonly onDemand?: boolean
  },
): Runs {
  const { source } = options
  const runs = new Map<string, RunContext>()
  const dirty = new Set<string>(source?.latestKeys() ?? (options.onDemand ? [] : ['']))
  const mark = (key: string): void => {
    dirty.add(key)
    graph.markDirty(store)
  }
  source?.dependents.push(mark)
  graph.exposeRuns(store, (key) => runs.get(key)?.reads.all ?? [])

  const createRun = (key: string): RunContext => {
    const run = new RunContext(graph, store, key, mark)
    runs.set(key, run)
    return run
  }
  const stop = (key: string): void => {
    const known = runs.get(key)
    known?.reads.clear()
    runs.delete(key)
    dirty.delete(key)
    options.dropped(key)
  }
  const start = (key: string): void => {
    const run = runs.get(key) ?? createRun(key)
    store.stats.recomputations += 1
    try {
      run.run(() => options.compute(run, key))
    } catch (error) {
      store.stats.failures += 1
      graph.report({ kind: 'derivation-failed', collection: store.name, key, error })
    }
  }
  return {
    start,
    stop,
    settle: (shouldPause) => {
      // Keys that become dirty meanwhile are visited too.
      for (const key of dirty) {
        dirty.delete(key)
        if (source !== undefined && !source.hasLatest(key)) stop(key)
        else if (!options.onDemand || runs.has(key)) start(key)
        if (dirty.size > 0 && shouldPause()) return false
      }
      return true
    },
  }
}
