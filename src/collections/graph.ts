// A graph of collections: transactions, waves in dependency order, synced state, introspection.

import { storeOf } from './context.ts'
import { createDemand } from './demand.ts'
import { createDerived, createDerivedMany } from './derived.ts'
import { CollectionBusyError, CollectionCycleError, type CollectionReport } from './errors.ts'
import { createGroup } from './group.ts'
import { createInput, type InputStage } from './input.ts'
import { type CollectionDescription, describeRead, describeStore } from './introspection.ts'
import { createJoin } from './join.ts'
import { connect, lowest } from './order.ts'
import type { Pace } from './pace.ts'
import { erased, type ShouldPause, type Store } from './store.ts'
import { StoreIndex } from './store-index.ts'
import type {
  Collection,
  Equality,
  Index,
  InputCollection,
  InputSingleton,
  OnDemandCollection,
  ReadContext,
  Singleton,
} from './types.ts'

export interface CollectionOptions<T> {
  /** When two values are the same, so that nothing after them is computed. Default: deep equality. */
  readonly equals?: Equality<T>
}

export interface DerivedOptions<T> extends CollectionOptions<T> {
  /** Collections it may read, where that is to count for order and synced state before the first read. */
  readonly reads?: readonly Collection<unknown>[]
}

export interface OnDemandOptions<T> extends DerivedOptions<T> {
  /** How many values that nobody holds are kept, the longest unused leaving first. Default 0. */
  readonly keepIdle?: number
}

export interface GraphOptions {
  /** Told of derivations and subscribers that throw, and of keys given twice. */
  readonly report: (report: CollectionReport) => void
  /** When a wave makes room for other work. Without it every wave is complete when its transaction returns. */
  readonly pace?: Pace
}

/** What users of a graph see of it. */
export type Graph = Pick<
  GraphEngine,
  | 'input'
  | 'inputSingleton'
  | 'derive'
  | 'deriveMany'
  | 'singleton'
  | 'join'
  | 'joinMerged'
  | 'index'
  | 'group'
  | 'onDemand'
  | 'transaction'
  | 'whenSettled'
  | 'describe'
  | 'dependenciesOf'
>

/**
 * Makes an empty graph.
 *
 * ```ts
 * const graph = createGraph({ report: (report) => log.warn('collections', report) })
 * const pods = graph.input<Pod>('pods')
 * const nodes = graph.input<Node>('nodes')
 * const zones = graph.derive('zones', pods, (context, pod) => context.get(nodes, pod.node)?.zone)
 * zones.subscribe((changes) => console.table(changes))
 * graph.transaction(() => {
 *   nodes.set('n1', { zone: 'eu-1' })
 *   pods.set('a', { node: 'n1' })
 * })
 * ```
 */
export function createGraph(options: GraphOptions): Graph {
  return new GraphEngine(options)
}

const never: ShouldPause = () => false

export class GraphEngine {
  readonly #report: (report: CollectionReport) => void
  readonly #pace: Pace | undefined
  readonly #stores: Store<unknown>[] = []
  readonly #dirty = new Set<Store<unknown>>()
  readonly #touched = new Set<Store<unknown>>()
  readonly #stages = new Map<Store<unknown>, InputStage>()
  readonly #runs = new WeakMap<Store<unknown>, (key: string) => readonly string[]>()
  readonly #afterWave: (() => void)[] = []
  #depth = 0
  #phase: 'idle' | 'computing' | 'paused' | 'notifying' = 'idle'
  #isResumePlanned = false
  #settled: PromiseWithResolvers<void> | undefined
  #syncChanged = false
  #cycle: CollectionCycleError | undefined

  constructor(options: GraphOptions) {
    this.#report = options.report
    this.#pace = options.pace
  }

  /** A collection filled from outside. */
  input<T>(name: string, options: CollectionOptions<T> = {}): InputCollection<T> {
    const { input, stage, store } = createInput<T>(this, name, options)
    this.#stages.set(erased(store), stage)
    this.#adopt(erased(store), [])
    return input
  }

  /** A value set from outside. */
  inputSingleton<T>(name: string, options: CollectionOptions<T> = {}): InputSingleton<T> {
    const input = this.input<T>(name, options)
    return {
      collection: input,
      get value() {
        return input.get('')
      },
      set: (value) => input.set('', value),
      delete: () => input.delete(''),
      markSynced: () => input.markSynced(),
    }
  }

  /** At most one value for each value of the source, under the same key. */
  derive<I, O>(
    name: string,
    source: Collection<I>,
    compute: (context: ReadContext, value: I, key: string) => O | undefined,
    options: DerivedOptions<O> = {},
  ): Collection<O> {
    return this.#start(createDerived(this, name, storeOf(this, source), compute, options), [
      source,
      ...(options.reads ?? []),
    ])
  }

  /** Any number of values, with keys of their own, for each value of the source. */
  deriveMany<I, O>(
    name: string,
    source: Collection<I>,
    compute: (context: ReadContext, value: I, key: string) => Iterable<readonly [key: string, value: O]>,
    options: DerivedOptions<O> = {},
  ): Collection<O> {
    return this.#start(createDerivedMany(this, name, storeOf(this, source), compute, options), [
      source,
      ...(options.reads ?? []),
    ])
  }

  /** One value, or none, from whatever it reads. */
  singleton<O>(
    name: string,
    compute: (context: ReadContext) => O | undefined,
    options: DerivedOptions<O> = {},
  ): Singleton<O> {
    const collection = this.#start(createDerived(this, name, undefined, compute, options), options.reads ?? [])
    return {
      collection,
      get value() {
        return collection.get('')
      },
    }
  }

  /** The union: of values with one key that of the first collection counts. */
  join<T>(name: string, collections: readonly Collection<T>[], options: CollectionOptions<T> = {}): Collection<T> {
    return this.joinMerged(name, collections, ([first]) => first, options)
  }

  /** The union: the values of one key, in the order of the collections, become one. */
  joinMerged<T, O>(
    name: string,
    collections: readonly Collection<T>[],
    merge: (values: readonly T[], key: string) => O | undefined,
    options: CollectionOptions<O> = {},
  ): Collection<O> {
    const stores = collections.map((collection) => storeOf(this, collection))
    return this.#start(createJoin(this, name, stores, merge, options), collections)
  }

  /** A lookup table: the collection's values by the keys a function gives them. */
  index<T>(name: string, collection: Collection<T>, keysOf: (value: T, key: string) => Iterable<string>): Index<T> {
    this.refuseWhileComputing('adding an index')
    this.#finishWave()
    const store = storeOf(this, collection)
    const table = {
      name,
      keysOf: keysOf as (value: unknown, key: string) => Iterable<string>,
      members: new Map(),
      sorted: new Map(),
      readers: new Map(),
      before: { noted: 0, members: new Map() },
    }
    store.addIndex(table)
    return new StoreIndex(store, table)
  }

  /** A collection with one value for each index key: the values under it, in the order of their keys. */
  group<T>(
    name: string,
    collection: Collection<T>,
    keysOf: (value: T, key: string) => Iterable<string>,
  ): Collection<readonly T[]> {
    return this.#start(createGroup(this, name, storeOf(this, collection), keysOf), [collection])
  }

  /** Values computed for a key when it is first asked for, shared by all who hold it, gone when nobody does. */
  onDemand<O>(
    name: string,
    compute: (context: ReadContext, key: string) => O | undefined,
    options: OnDemandOptions<O> = {},
  ): OnDemandCollection<O> {
    const demand = createDemand(this, name, compute, options)
    this.#start(demand, options.reads ?? [])
    return demand
  }

  /**
   * Makes all changes of inputs inside `body` one wave. Transactions nest; when the outermost throws, its changes are dropped.
   * Inside a subscriber the wave follows after the present one.
   */
  transaction<R>(body: () => R): R {
    this.refuseWhileComputing('a transaction')
    if (this.#depth === 0) for (const stage of this.#stages.values()) stage.mark()
    this.#depth += 1
    let result: R
    try {
      result = body()
    } catch (error) {
      if (this.#depth === 1) for (const stage of this.#stages.values()) stage.rollback()
      throw error
    } finally {
      this.#depth -= 1
    }
    this.#settle()
    return result
  }

  /** Resolves when every change made so far, and those made meanwhile, have been computed and told. */
  whenSettled(): Promise<void> {
    if (this.#phase === 'idle' && !this.#hasWork()) return Promise.resolve()
    this.#settled ??= Promise.withResolvers()
    return this.#settled.promise
  }

  /** @internal A wave is under way: readers outside of the graph see what was before it. */
  get isMidWave(): boolean {
    return this.#phase === 'computing' || this.#phase === 'paused'
  }

  /** Every collection, in the order of creation. */
  describe(): readonly CollectionDescription[] {
    return this.#stores.map(describeStore)
  }

  /** What the run behind a key read the last time, as text: `<collection>[<key>]` and the like. */
  dependenciesOf(collection: Collection<unknown>, key: string): readonly string[] {
    return this.#runs.get(storeOf(this, collection))?.(key) ?? []
  }

  /** @internal */
  report(report: CollectionReport): void {
    this.#report(report)
  }

  /** @internal */
  refuseWhileComputing(action: string): void {
    if (this.#phase === 'computing') throw new CollectionBusyError(action)
  }

  /** @internal */
  touched(store: Store<unknown>): void {
    this.#touched.add(store)
  }

  /** @internal The collection has something to compute. */
  markDirty(store: Store<unknown>): void {
    this.#dirty.add(store)
  }

  /** @internal Work for the end of the wave: the graph is current, subscribers have not been called. */
  afterWave(work: () => void): void {
    this.#afterWave.push(work)
  }

  /** @internal */
  syncChanged(): void {
    this.#syncChanged = true
  }

  /** @internal How reads of a collection's runs are found, for introspection. */
  exposeRuns(store: Store<unknown>, readsOf: (key: string) => Iterable<Parameters<typeof describeRead>[0]>): void {
    this.#runs.set(store, (key) => [...new Set(Iterator.from(readsOf(key)).map(describeRead))])
  }

  /**
   * @internal Called before each read of a derivation. What it has read before is current: that is settled first. What it
   * reads for the first time is brought up to date, and the order learnt.
   */
  beforeRead(reader: Store<unknown>, read: Store<unknown>): void {
    if (reader.upstream.has(read)) return
    this.#connect(reader, read)
    if (this.#dirty.size > 0) this.#makeCurrent(read)
  }

  /** @internal Runs work that computes, outside of a wave. */
  compute(work: () => void): void {
    this.refuseWhileComputing('asking for a value')
    this.#finishWave()
    const before = this.#phase
    this.#phase = 'computing'
    try {
      this.#computeDirty(never)
      work()
      this.#computeDirty(never)
    } finally {
      this.#phase = before
    }
    if (before === 'idle') this.#settle()
  }

  #adopt(store: Store<unknown>, upstream: readonly Collection<unknown>[]): void {
    this.refuseWhileComputing('adding a collection')
    this.#finishWave()
    this.#stores.push(store)
    for (const collection of upstream) this.#connect(store, storeOf(this, collection))
    this.#syncChanged = true
  }

  #start<O>(store: Store<O>, upstream: readonly Collection<unknown>[]): Store<O> {
    this.#adopt(erased(store), upstream)
    this.markDirty(erased(store))
    if (this.#depth === 0 && this.#phase === 'idle') this.#advance(never)
    return store
  }

  #connect(reader: Store<unknown>, read: Store<unknown>): void {
    try {
      connect(reader, read)
    } catch (error) {
      if (error instanceof CollectionCycleError) this.#cycle = error
      throw error
    }
  }

  #makeCurrent(store: Store<unknown>): void {
    for (const upstream of store.upstream) this.#makeCurrent(upstream)
    if (this.#dirty.delete(store)) this.#settleStore(store, never)
  }

  #settleStore(store: Store<unknown>, shouldPause: ShouldPause): boolean {
    const start = performance.now()
    const isDone = store.options.settle?.(shouldPause) ?? true
    store.stats.milliseconds += performance.now() - start
    return isDone
  }

  /** False when it stopped before the end. */
  #computeDirty(shouldPause: ShouldPause): boolean {
    for (let next = lowest(this.#dirty); next !== undefined; next = lowest(this.#dirty)) {
      this.#dirty.delete(next)
      if (this.#settleStore(next, shouldPause)) continue
      this.#dirty.add(next)
      return false
    }
    return true
  }

  /** Computes and tells what waits, unless a transaction is open or a wave is under way. */
  #settle(): void {
    if (this.#depth > 0 || this.#phase !== 'idle') return
    this.#advance(this.#pace === undefined ? never : this.#pace.shouldPause)
  }

  /** Completes a wave that has paused. */
  #finishWave(): void {
    if (this.#phase === 'paused') this.#advance(never)
  }

  /** Goes on until nothing is left or it is time to pause. */
  #advance(shouldPause: ShouldPause): void {
    while (this.#phase === 'paused' || this.#hasWork()) {
      if (this.#phase === 'idle') {
        if (shouldPause()) {
          this.#resumeLater()
          return
        }
        // What was asked for while others were told is in force before the next wave.
        if (this.#touched.size > 0) this.#tell()
        for (const stage of this.#stages.values()) stage.begin()
      }
      if (!this.#computeSome(shouldPause)) {
        this.#resumeLater()
        return
      }
      this.#tell()
    }
    const cycle = this.#cycle
    this.#cycle = undefined
    this.#settled?.resolve()
    this.#settled = undefined
    if (cycle !== undefined) throw cycle
  }

  /** Computes the wave under way; false when it paused before the end. */
  #computeSome(shouldPause: ShouldPause): boolean {
    this.#phase = 'computing'
    let isDone = true
    try {
      isDone = this.#stages.values().every((stage) => stage.commit(shouldPause)) && this.#computeDirty(shouldPause)
      if (isDone) for (const work of this.#afterWave.splice(0)) work()
    } finally {
      this.#phase = isDone ? 'idle' : 'paused'
    }
    return isDone
  }

  #resumeLater(): void {
    if (this.#isResumePlanned || this.#pace === undefined) return
    this.#isResumePlanned = true
    this.#pace.later(() => {
      this.#isResumePlanned = false
      if (this.#depth > 0 || (this.#phase !== 'idle' && this.#phase !== 'paused')) return
      try {
        this.#advance(this.#pace?.shouldPause ?? never)
      } catch (error) {
        // The derivation that closed the circle has been reported as failed.
        if (!(error instanceof CollectionCycleError)) throw error
      }
    })
  }

  #tell(): void {
    this.#phase = 'notifying'
    try {
      this.#notify()
    } finally {
      this.#phase = 'idle'
    }
  }

  #hasWork(): boolean {
    if (this.#dirty.size > 0 || this.#touched.size > 0 || this.#syncChanged || this.#afterWave.length > 0) return true
    return this.#stages.values().some((stage) => stage.pending)
  }

  #notify(): void {
    const touched = [...this.#touched]
    this.#touched.clear()
    const calls = touched.flatMap((store) => store.takeNotifications().map((call) => ({ store, call })))
    for (const { store, call } of calls) {
      try {
        call()
      } catch (error) {
        this.#report({ kind: 'listener-failed', collection: store.name, error })
      }
    }
    if (!this.#syncChanged) return
    this.#syncChanged = false
    for (const store of [...this.#stores].sort((a, b) => a.height - b.height)) {
      const ready = this.#stages.get(store)?.read ?? store.upstream.values().every((upstream) => upstream.synced)
      if (ready && !store.synced) store.becomeSynced()
    }
  }
}
