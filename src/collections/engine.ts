// What drives a graph: each transaction of inputs becomes a wave, which computes what it concerns and tells what changed.

import { Agenda, never } from './agenda.ts'
import { Announcements } from './announcements.ts'
import { storeOf } from './context.ts'
import { CollectionBusyError, CollectionCycleError, type CollectionReport } from './errors.ts'
import type { InputStage } from './input.ts'
import { type CollectionDescription, describeRead, describeStore } from './introspection.ts'
import type { Pace } from './pace.ts'
import { Stages } from './stages.ts'
import { erased, type IndexTable, type ShouldPause, type Store } from './store.ts'
import { StoreIndex } from './store-index.ts'
import type { Collection } from './types.ts'

export interface GraphOptions {
  /** Told of derivations and subscribers that throw, and of keys given twice. */
  readonly report: (report: CollectionReport) => void
  /** When a wave makes room for other work. Without it every wave is complete when its transaction returns. */
  readonly pace?: Pace
}

export class GraphEngine {
  readonly report: (report: CollectionReport) => void
  readonly #pace: Pace | undefined
  readonly #stores: Store<unknown>[] = []
  readonly #stages = new Stages()
  readonly #agenda = new Agenda()
  readonly #announcements: Announcements
  readonly #runs = new WeakMap<Store<unknown>, (key: string) => readonly string[]>()
  readonly #afterWave: (() => void)[] = []
  #depth = 0
  #phase: 'idle' | 'computing' | 'paused' | 'notifying' = 'idle'
  #isResumePlanned = false
  #settled: PromiseWithResolvers<void> | undefined

  constructor(options: GraphOptions) {
    this.report = options.report
    this.#pace = options.pace
    this.#announcements = new Announcements(options.report)
  }

  addInput(store: Store<unknown>, stage: InputStage): void {
    this.#stages.add(store, stage)
    this.#adopt(store, [])
  }

  /** Takes in a collection that is computed, and computes it. */
  add<O>(store: Store<O>, upstream: readonly Collection<unknown>[]): Store<O> {
    this.#adopt(erased(store), upstream)
    this.markDirty(erased(store))
    if (this.#depth === 0 && this.#phase === 'idle') this.#advance(never)
    return store
  }

  addIndex<T>(store: Store<T>, table: IndexTable): StoreIndex<T> {
    this.refuseWhileComputing('adding an index')
    this.#finishWave()
    store.addIndex(table)
    return new StoreIndex(store, table)
  }

  transaction<R>(body: () => R): R {
    this.refuseWhileComputing('a transaction')
    if (this.#depth === 0) this.#stages.mark()
    this.#depth += 1
    let result: R
    try {
      result = body()
    } catch (error) {
      if (this.#depth === 1) this.#stages.rollback()
      throw error
    } finally {
      this.#depth -= 1
    }
    this.#settle()
    return result
  }

  whenSettled(): Promise<void> {
    if (this.#phase === 'idle' && !this.#hasWork()) return Promise.resolve()
    this.#settled ??= Promise.withResolvers()
    return this.#settled.promise
  }

  /** A wave is under way: readers outside of the graph see what was before it. */
  get isMidWave(): boolean {
    return this.#phase === 'computing' || this.#phase === 'paused'
  }

  describe(): readonly CollectionDescription[] {
    return this.#stores.map(describeStore)
  }

  dependenciesOf(store: Store<unknown>, key: string): readonly string[] {
    return this.#runs.get(store)?.(key) ?? []
  }

  /** How reads of a collection's runs are found, for introspection. */
  exposeRuns(store: Store<unknown>, readsOf: (key: string) => Iterable<Parameters<typeof describeRead>[0]>): void {
    this.#runs.set(store, (key) => [...new Set(Iterator.from(readsOf(key)).map(describeRead))])
  }

  refuseWhileComputing(action: string): void {
    if (this.#phase === 'computing') throw new CollectionBusyError(action)
  }

  touched(store: Store<unknown>): void {
    this.#announcements.touched(store)
  }

  /** The collection has something to compute. */
  markDirty(store: Store<unknown>): void {
    this.#agenda.add(store)
  }

  /** Work for the end of the wave: the graph is current, subscribers have not been called. */
  afterWave(work: () => void): void {
    this.#afterWave.push(work)
  }

  syncChanged(): void {
    this.#announcements.syncChanged()
  }

  /**
   * Called before each read of a derivation. What it has read before is current: that is settled first. What it
   * reads for the first time is brought up to date, and the order learnt.
   */
  beforeRead(reader: Store<unknown>, read: Store<unknown>): void {
    if (reader.upstream.has(read)) return
    this.#agenda.connect(reader, read)
    if (!this.#agenda.isEmpty) this.#agenda.makeCurrent(read)
  }

  /** Runs work that computes, outside of a wave. */
  compute(work: () => void): void {
    this.refuseWhileComputing('asking for a value')
    this.#finishWave()
    const before = this.#phase
    this.#phase = 'computing'
    try {
      this.#agenda.compute(never)
      work()
      this.#agenda.compute(never)
    } finally {
      this.#phase = before
    }
    if (before === 'idle') this.#settle()
  }

  #adopt(store: Store<unknown>, upstream: readonly Collection<unknown>[]): void {
    this.refuseWhileComputing('adding a collection')
    this.#finishWave()
    this.#stores.push(store)
    for (const collection of upstream) this.#agenda.connect(store, storeOf(this, collection))
    this.#announcements.syncChanged()
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
        if (this.#announcements.hasChanges) this.#tell()
        this.#stages.begin()
      }
      if (!this.#computeSome(shouldPause)) {
        this.#resumeLater()
        return
      }
      this.#tell()
    }
    const cycle = this.#agenda.takeCycle()
    this.#settled?.resolve()
    this.#settled = undefined
    if (cycle !== undefined) throw cycle
  }

  /** Computes the wave under way; false when it paused before the end. */
  #computeSome(shouldPause: ShouldPause): boolean {
    this.#phase = 'computing'
    let isDone = true
    try {
      isDone = this.#stages.commit(shouldPause) && this.#agenda.compute(shouldPause)
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
      this.#announcements.tell(this.#stores, (store) => this.#stages.isRead(store))
    } finally {
      this.#phase = 'idle'
    }
  }

  #hasWork(): boolean {
    return !this.#agenda.isEmpty || this.#announcements.pending || this.#afterWave.length > 0 || this.#stages.pending
  }
}
