// A graph of collections, as its users see it: each kind of collection is made here.

import { storeOf } from './context.ts'
import { createDemand } from './demand.ts'
import { createDerived, createDerivedMany } from './derived.ts'
import { GraphEngine, type GraphOptions } from './engine.ts'
import { createGroup } from './group.ts'
import { createInput } from './input.ts'
import type { CollectionDescription } from './introspection.ts'
import { createJoin } from './join.ts'
import type { CollectionOptions, DerivedOptions, OnDemandOptions } from './options.ts'
import { erased } from './store.ts'
import { createIndexTable } from './store-index.ts'
import type {
  Collection,
  Index,
  InputCollection,
  InputSingleton,
  OnDemandCollection,
  ReadContext,
  Singleton,
} from './types.ts'

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
  return new Graph(new GraphEngine(options))
}

export class Graph {
  readonly #engine: GraphEngine

  constructor(engine: GraphEngine) {
    this.#engine = engine
  }

  /** A collection filled from outside. */
  input<T>(name: string, options: CollectionOptions<T> = {}): InputCollection<T> {
    const { input, stage, store } = createInput<T>(this.#engine, name, options)
    this.#engine.addInput(erased(store), stage)
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
    return this.#engine.add(createDerived(this.#engine, name, storeOf(this.#engine, source), compute, options), [
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
    return this.#engine.add(createDerivedMany(this.#engine, name, storeOf(this.#engine, source), compute, options), [
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
    const collection = this.#engine.add(
      createDerived(this.#engine, name, undefined, compute, options),
      options.reads ?? [],
    )
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
    const stores = collections.map((collection) => storeOf(this.#engine, collection))
    return this.#engine.add(createJoin(this.#engine, name, stores, merge, options), collections)
  }

  /** A lookup table: the collection's values by the keys a function gives them. */
  index<T>(name: string, collection: Collection<T>, keysOf: (value: T, key: string) => Iterable<string>): Index<T> {
    return this.#engine.addIndex(storeOf(this.#engine, collection), createIndexTable(name, keysOf))
  }

  /** A collection with one value for each index key: the values under it, in the order of their keys. */
  group<T>(
    name: string,
    collection: Collection<T>,
    keysOf: (value: T, key: string) => Iterable<string>,
  ): Collection<readonly T[]> {
    return this.#engine.add(createGroup(this.#engine, name, storeOf(this.#engine, collection), keysOf), [collection])
  }

  /** Values computed for a key when it is first asked for, shared by all who hold it, gone when nobody does. */
  onDemand<O>(
    name: string,
    compute: (context: ReadContext, key: string) => O | undefined,
    options: OnDemandOptions<O> = {},
  ): OnDemandCollection<O> {
    const demand = createDemand(this.#engine, name, compute, options)
    this.#engine.add(demand, options.reads ?? [])
    return demand
  }

  /**
   * Makes all changes of inputs inside `body` one wave. Transactions nest; when the outermost throws, its changes are dropped.
   * Inside a subscriber the wave follows after the present one.
   */
  transaction<R>(body: () => R): R {
    return this.#engine.transaction(body)
  }

  /** Resolves when every change made so far, and those made meanwhile, have been computed and told. */
  whenSettled(): Promise<void> {
    return this.#engine.whenSettled()
  }

  /** Every collection, in the order of creation. */
  describe(): readonly CollectionDescription[] {
    return this.#engine.describe()
  }

  /** What the run behind a key read the last time, as text: `<collection>[<key>]` and the like. */
  dependenciesOf(collection: Collection<unknown>, key: string): readonly string[] {
    return this.#engine.dependenciesOf(storeOf(this.#engine, collection), key)
  }
}
