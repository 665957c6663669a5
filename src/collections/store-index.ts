// The public face of an index of a collection.
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
