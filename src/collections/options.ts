// What is said of a collection when it is made.
import type { Collection, Equality } from './types.ts'

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
