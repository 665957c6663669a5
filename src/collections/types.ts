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
