// The context a derivation reads through.

import type { GraphEngine } from './engine.ts'
import { ForeignCollectionError } from './errors.ts'
import { ReadList, type Run } from './reads.ts'
import { erased, Store } from './store.ts'
import { StoreIndex } from './store-index.ts'
import type { Collection, Index, ListOptions, ReadContext, Singleton } from './types.ts'

/** One run of a derivation and the context it reads through: one object, since there is one for every value. */
export class RunContext implements ReadContext, Run {
  readonly key: string
  readonly reads = new ReadList(this)
  readonly #graph: GraphEngine
  readonly #reader: Store<unknown>
  readonly #mark: (key: string) => void
  #running = false

  /** `mark` notes that the run is to be made again. */
  constructor(graph: GraphEngine, reader: Store<unknown>, key: string, mark: (key: string) => void) {
    this.key = key
    this.#graph = graph
    this.#reader = reader
    this.#mark = mark
  }

  invalidate(): void {
    // While it runs, only reads of the last run can be concerned: this one has read what is current.
    if (!this.#running) this.#mark(this.key)
  }

  run(compute: () => void): void {
    this.#running = true
    this.reads.begin()
    try {
      compute()
    } finally {
      this.reads.end()
      this.#running = false
    }
  }

  get<T>(collection: Collection<T>, key: string): T | undefined {
    const store = this.#open(storeOf(this.#graph, collection))
    store.options.materialize?.(key)
    this.reads.record(erased(store), undefined, key, undefined, undefined)
    return store.latest(key)
  }

  pick<T, P>(collection: Collection<T>, key: string, select: (value: T | undefined) => P): P {
    const store = this.#open(storeOf(this.#graph, collection))
    store.options.materialize?.(key)
    this.reads.record(erased(store), undefined, key, undefined, select)
    return select(store.latest(key))
  }

  list<T, P = T>(collection: Collection<T>, options?: ListOptions<T, P>): readonly P[] {
    const store = this.#open(storeOf(this.#graph, collection))
    this.reads.record(erased(store), undefined, undefined, options?.where, options?.select)
    return narrowed(store.sortedValues(), options)
  }

  listBy<T, P = T>(index: Index<T>, indexKey: string, options?: ListOptions<T, P>): readonly P[] {
    const { store, table } = indexOf(this.#graph, index)
    this.#open(store)
    this.reads.record(erased(store), table, indexKey, options?.where, options?.select)
    return narrowed(store.indexedValues(table, indexKey), options)
  }

  value<T>(singleton: Singleton<T>): T | undefined {
    return this.get(singleton.collection, '')
  }

  #open<T>(store: Store<T>): Store<T> {
    this.#graph.beforeRead(this.#reader, erased(store))
    return store
  }
}

export function storeOf<T>(graph: GraphEngine, collection: Collection<T>): Store<T> {
  if (!(collection instanceof Store) || collection.graph !== graph) throw new ForeignCollectionError(collection.name)
  return collection as Store<T>
}

function indexOf<T>(graph: GraphEngine, index: Index<T>): StoreIndex<T> {
  if (!(index instanceof StoreIndex) || index.store.graph !== graph) throw new ForeignCollectionError(index.name)
  return index
}

function narrowed<T, P>(values: readonly T[], options: ListOptions<T, P> | undefined): readonly P[] {
  const { where, select } = options ?? {}
  const fitting = where === undefined ? values : values.filter(where)
  return select === undefined ? (fitting as readonly unknown[] as readonly P[]) : fitting.map(select)
}
