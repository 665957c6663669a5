// What a graph tells about itself.
import type { Read } from './reads.ts'
import type { Store } from './store.ts'

export interface CollectionDescription {
  readonly name: string
  readonly kind: string
  readonly size: number
  readonly synced: boolean
  /** Names of the collections it has read. */
  readonly reads: readonly string[]
  /** Names of the collections that have read it. */
  readonly readBy: readonly string[]
  readonly indexes: readonly string[]
  /** Runs of its function since the start. */
  readonly recomputations: number
  readonly failures: number
  /** Values that really changed since the start. */
  readonly changes: number
  /** Time spent in it since the start, with what it brought up to date on the way. */
  readonly milliseconds: number
}

export function describeStore(store: Store<unknown>): CollectionDescription {
  return {
    name: store.name,
    kind: store.options.kind,
    size: store.size,
    synced: store.synced,
    reads: [...store.upstream].map((one) => one.name),
    readBy: [...store.downstream].map((one) => one.name),
    indexes: store.indexes.map((index) => index.name),
    ...store.stats,
  }
}

export function describeRead(read: Read): string {
  const narrowed = `${read.where === undefined ? '' : ' where'}${read.select === undefined ? '' : ' select'}`
  if (read.key === undefined) return `${read.store.name}[*]${narrowed}`
  if (read.index === undefined) return `${read.store.name}[${read.key}]${narrowed}`
  return `${read.store.name} by ${read.index.name}[${read.key}]${narrowed}`
}
