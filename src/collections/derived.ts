// Derived collections: a pure function, run again for the keys whose source value or recorded reads changed.
import { RunContext } from './context.ts'
import type { DerivedOptions, GraphEngine } from './graph.ts'
import { erased, Store } from './store.ts'
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
  const store: Store<O> = new Store<O>(graph, name, { kind, equals: options.equals, settle: () => runs.settle() })
  const runs = createRuns(graph, erased(store), {
    source: source && erased(source),
    compute: (context, key) => store.write(key, compute(context, source?.get(key) as I, key)),
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
    settle: () => {
      runs.settle()
      for (const key of touched) publish(key)
      touched.clear()
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
      for (const [key, value] of compute(context, source.get(inputKey) as I, inputKey)) {
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
  /** Runs what is dirty. */
  settle(): void
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
  let dirty = new Set<string>(source?.keys() ?? (options.onDemand ? [] : ['']))
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
    settle: () => {
      while (dirty.size > 0) {
        const keys = dirty
        dirty = new Set()
        for (const key of keys) {
          if (source !== undefined && !source.has(key)) stop(key)
          else if (!options.onDemand || runs.has(key)) start(key)
        }
      }
    },
  }
}
