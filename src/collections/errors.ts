// What can go wrong in a graph of collections.

/** A derivation reads, directly or through others, what is derived from it. */
export class CollectionCycleError extends Error {
  readonly code = 'COLLECTION_CYCLE'
  /** Names of the collections around the cycle; the first is repeated at the end. */
  readonly path: readonly string[]

  constructor(path: readonly string[]) {
    super(`collections depend on each other in a circle: ${path.join(' reads ')}`)
    this.name = 'CollectionCycleError'
    this.path = path
  }
}

/** A derivation tried to change or drive the graph while it was being computed. */
export class CollectionBusyError extends Error {
  readonly code = 'COLLECTION_BUSY'

  constructor(action: string) {
    super(`${action} inside a derivation: derivations only read, through their context`)
    this.name = 'CollectionBusyError'
  }
}

/** A collection was used with another graph than the one that made it. */
export class ForeignCollectionError extends Error {
  readonly code = 'FOREIGN_COLLECTION'

  constructor(name: string) {
    super(`collection ${name} does not belong to this graph`)
    this.name = 'ForeignCollectionError'
  }
}

export type CollectionReport =
  /** A derivation threw: what it gave before for this key stays in force. */
  | { readonly kind: 'derivation-failed'; readonly collection: string; readonly key: string; readonly error: unknown }
  /** Two inputs gave the same key: the output of the smaller input key is in force. */
  | {
      readonly kind: 'duplicate-key'
      readonly collection: string
      readonly key: string
      readonly inputs: readonly string[]
    }
  /** An index (or group) could not tell the keys of a value: it is found under none. */
  | {
      readonly kind: 'index-failed'
      readonly collection: string
      readonly index: string
      readonly key: string
      readonly error: unknown
    }
  /** A subscriber threw; the others were called. */
  | { readonly kind: 'listener-failed'; readonly collection: string; readonly error: unknown }
