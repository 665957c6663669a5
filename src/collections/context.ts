// The context a derivation reads through.
import { ForeignCollectionError } from './errors.ts'
import type { Graph } from './graph.ts'
import { type Run, register } from './reads.ts'
import { erased, Store } from './store.ts'
import { StoreIndex } from './store-index.ts'
import type { Collection, Index, ListOptions, ReadContext } from './types.ts'

/** The context of one run of a derivation of `reader`. */
export function readContext(graph: Graph, reader: Store<unknown>, run: Run): ReadContext {
  const open = <T>(collection: Collection<T>): Store<T> => {
    const store = storeOf(graph, collection)
    graph.beforeRead(reader, erased(store))
    return store
  }
  return {
    get: (collection, key) => {
      const store = open(collection)
      store.options.materialize?.(key)
      register({ run, store: erased(store), key })
      return store.get(key)
    },
    pick: (collection, key, select) => {
      const store = open(collection)
      store.options.materialize?.(key)
      register({ run, store: erased(store), key, select })
      return select(store.get(key))
    },
    list: (collection, options) => {
      const store = open(collection)
      register({ run, store: erased(store), where: options?.where, select: options?.select })
      return narrowed(store.sortedValues(), options)
    },
    listBy: (index, indexKey, options) => {
      const { store, table } = indexOf(graph, index)
      graph.beforeRead(reader, erased(store))
      register({
        run,
        store: erased(store),
        index: table,
        key: indexKey,
        where: options?.where,
        select: options?.select,
      })
      return narrowed(store.indexedValues(table, indexKey), options)
    },
    value: (singleton) => {
      const store = open(singleton.collection)
      register({ run, store: erased(store), key: '' })
      return store.get('')
    },
  }
}

export function storeOf<T>(graph: Graph, collection: Collection<T>): Store<T> {
  if (!(collection instanceof Store) || collection.graph !== graph) throw new ForeignCollectionError(collection.name)
  return collection as Store<T>
}

function indexOf<T>(graph: Graph, index: Index<T>): StoreIndex<T> {
  if (!(index instanceof StoreIndex) || index.store.graph !== graph) throw new ForeignCollectionError(index.name)
  return index
}

function narrowed<T, P>(values: readonly T[], options: ListOptions<T, P> | undefined): readonly P[] {
  const { where, select } = options ?? {}
  const fitting = where === undefined ? values : values.filter(where)
  return select === undefined ? (fitting as readonly unknown[] as readonly P[]) : fitting.map(select)
}
