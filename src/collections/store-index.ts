// Indexes of a collection: an empty table, and its public face.
import type { IndexTable, Store } from './store.ts'
import type { Index } from './types.ts'

export class StoreIndex<T> implements Index<T> {
  readonly store: Store<T>
  readonly table: IndexTable

  constructor(store: Store<T>, table: IndexTable) {
    this.store = store
    this.table = table
  }

  get name(): string {
    return this.table.name
  }

  get(indexKey: string): readonly T[] {
    return this.store.publishedValues(this.table, indexKey)
  }
}

export function createIndexTable<T>(name: string, keysOf: (value: T, key: string) => Iterable<string>): IndexTable {
  return {
    name,
    keysOf: keysOf as (value: unknown, key: string) => Iterable<string>,
    members: new Map(),
    sorted: new Map(),
    readers: new Map(),
    before: { noted: 0, members: new Map() },
  }
}
