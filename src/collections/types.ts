// Collections: keyed sets of immutable values that tell, in batches, what changed.

export type Change<T> =
  | { readonly kind: 'added'; readonly key: string; readonly new: T }
  | { readonly kind: 'updated'; readonly key: string; readonly old: T; readonly new: T }
  | { readonly kind: 'removed'; readonly key: string; readonly old: T }

export interface Collection<T> {
  readonly name: string
  /** True when every input it depends on has been read once. */
  readonly synced: boolean
  readonly whenSynced: Promise<void>
  get(key: string): T | undefined
  entries(): Iterable<readonly [key: string, value: T]>
  readonly size: number
  /** Calls the listener once per wave with all changes of the wave; the present content comes first, as `added`. Returns the function that ends the subscription. */
  subscribe(listener: (changes: readonly Change<T>[]) => void): () => void
}

/** A collection filled from outside. Changes take effect, all at once, when the transaction they are made in ends. */
export interface InputCollection<T> extends Collection<T> {
  set(key: string, value: T): void
  delete(key: string): void
  /** Every key in it, and those whose changes have not taken effect yet. */
  keys(): Iterable<string>
  /** Makes the content exactly these entries. */
  replace(entries: Iterable<readonly [key: string, value: T]>): void
  /** The source has been read once to its end. */
  markSynced(): void
}

/** A lookup table over a collection, kept current with it. */
export interface Index<T> {
  readonly name: string
  /** The values under the index key, in the order of their keys. */
  get(indexKey: string): readonly T[]
}

/** A collection of at most one value. */
export interface Singleton<T> {
  readonly collection: Collection<T>
  readonly value: T | undefined
}

export interface InputSingleton<T> extends Singleton<T> {
  set(value: T): void
  delete(): void
  markSynced(): void
}

/** Narrows a read, so that only changes of what it answers count. `where` and `select` must be pure. */
export interface ListOptions<T, P> {
  readonly where?: (value: T) => boolean
  /** What of the value is read: a change that leaves it equal does not count. */
  readonly select?: (value: T) => P
}

/** Through which a derivation reads. Every read is recorded: a change of its answer computes the derivation again. */
export interface ReadContext {
  get<T>(collection: Collection<T>, key: string): T | undefined
  /** Reads a part of one value. */
  pick<T, P>(collection: Collection<T>, key: string, select: (value: T | undefined) => P): P
  /** All values that fit, in the order of their keys. */
  list<T, P = T>(collection: Collection<T>, options?: ListOptions<T, P>): readonly P[]
  /** The values under an index key that fit, in the order of their keys. */
  listBy<T, P = T>(index: Index<T>, indexKey: string, options?: ListOptions<T, P>): readonly P[]
  value<T>(singleton: Singleton<T>): T | undefined
}

export type Equality<T> = (a: T, b: T) => boolean

/** A value held by key for as long as somebody needs it. */
export interface Lease<T> extends Disposable {
  readonly key: string
  /** Undefined where the derivation gives nothing for the key. */
  readonly value: T | undefined
  close(): void
}

/** A collection whose values exist while a lease or a reader holds their key. */
export interface OnDemandCollection<T> extends Collection<T> {
  acquire(key: string): Lease<T>
}
