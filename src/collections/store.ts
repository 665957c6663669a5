// The content of one collection: values, indexes, who reads what, and what changed in the present wave.
import { isDeepStrictEqual } from 'node:util'
import type { GraphEngine } from './engine.ts'
import { type Bag, concerns, type Read } from './reads.ts'
import type { Change, Collection, Equality } from './types.ts'

export interface IndexTable {
  readonly name: string
  readonly keysOf: (value: unknown, key: string) => Iterable<string>
  readonly members: Map<string, Set<string>>
  readonly sorted: Map<string, readonly unknown[]>
  readonly readers: Map<string, Bag>
  /** Of the wave under way: the changed values' keys before it, by index key, as far as they have been asked for. */
  readonly before: { noted: number; readonly members: Map<string, Set<string>> }
}

export interface StoreOptions<T> {
  readonly kind: string
  readonly equals?: Equality<T> | undefined
  /** Processes what is dirty, one step at least; called when everything upstream is current. False when it stopped before its end. */
  readonly settle?: (shouldPause: ShouldPause) => boolean
  /** Makes the value of an on-demand key exist before it is read. */
  readonly materialize?: (key: string) => void
  /** Nobody reads the key any more. */
  readonly released?: (key: string) => void
}

/** Asked between two steps of computing; true: stop here and go on later. */
export type ShouldPause = () => boolean

/** Readers outside of the graph see the content before the wave until the wave is complete; the graph itself reads the `latest` one. */
export class Store<T> implements Collection<T> {
  readonly name: string
  readonly graph: GraphEngine
  readonly options: StoreOptions<T>
  readonly upstream = new Set<Store<unknown>>()
  readonly downstream = new Set<Store<unknown>>()
  readonly stats = { recomputations: 0, failures: 0, changes: 0, milliseconds: 0 }
  /** Longer than that of everything upstream. */
  height = 0
  synced = false
  readonly whenSynced: Promise<void>
  /** Called with each key written, before any subscriber: the stages that take this collection as their source. */
  readonly dependents: ((key: string) => void)[] = []
  readonly indexes: IndexTable[] = []
  readonly keyReaders = new Map<string, Bag>()
  readonly listReaders: Bag = new Set()
  readonly #equals: Equality<T>
  readonly #values = new Map<string, T>()
  readonly #listeners = new Set<(changes: readonly Change<T>[]) => void>()
  #wave = new Map<string, T | undefined>()
  #sorted: readonly T[] | undefined
  #resolveSynced: () => void

  constructor(graph: GraphEngine, name: string, options: StoreOptions<T>) {
    this.graph = graph
    this.name = name
    this.options = options
    this.#equals = options.equals ?? isDeepStrictEqual
    const { promise, resolve } = Promise.withResolvers<void>()
    this.whenSynced = promise
    this.#resolveSynced = resolve
  }

  get size(): number {
    if (!this.#isChanging()) return this.#values.size
    let size = this.#values.size
    for (const [key, old] of this.#wave) size += Number(old !== undefined) - Number(this.#values.has(key))
    return size
  }

  get(key: string): T | undefined {
    return this.#isChanging() && this.#wave.has(key) ? this.#wave.get(key) : this.#values.get(key)
  }

  entries(): Iterable<readonly [string, T]> {
    return this.#isChanging() ? this.#entriesBefore() : this.#values.entries()
  }

  latest(key: string): T | undefined {
    return this.#values.get(key)
  }

  hasLatest(key: string): boolean {
    return this.#values.has(key)
  }

  latestKeys(): Iterable<string> {
    return this.#values.keys()
  }

  /** All values in the order of their keys. */
  sortedValues(): readonly T[] {
    this.#sorted ??= inKeyOrder([...this.#values.keys()], this.#values)
    return this.#sorted
  }

  /** The values under an index key in the order of their keys, for readers outside of the graph. */
  publishedValues(index: IndexTable, indexKey: string): readonly T[] {
    if (!this.#isChanging()) return this.indexedValues(index, indexKey)
    this.#noteBefore(index)
    const keys = [...(index.members.get(indexKey) ?? [])].filter((key) => !this.#wave.has(key))
    const values: T[] = []
    for (const key of [...keys, ...(index.before.members.get(indexKey) ?? [])].sort()) {
      const value = this.get(key)
      if (value !== undefined) values.push(value)
    }
    return values
  }

  /** The values under an index key in the order of their keys. */
  indexedValues(index: IndexTable, indexKey: string): readonly T[] {
    const known = index.sorted.get(indexKey)
    if (known !== undefined) return known as readonly T[]
    const members = index.members.get(indexKey)
    if (members === undefined) return []
    const values = inKeyOrder([...members], this.#values)
    index.sorted.set(indexKey, values)
    return values
  }

  /** Puts (or, with undefined, removes) a value. An equal value stops here. */
  write(key: string, value: T | undefined): void {
    const old = this.#values.get(key)
    if (old === undefined && value === undefined) return
    if (old !== undefined && value !== undefined && (Object.is(old, value) || this.#equals(old, value))) return
    if (!this.#wave.has(key)) this.#wave.set(key, old)
    if (value === undefined) this.#values.delete(key)
    else this.#values.set(key, value)
    this.#sorted = undefined
    this.stats.changes += 1
    this.graph.touched(erased(this))
    for (const dependent of this.dependents) dependent(key)
    invalidate(this.keyReaders.get(key), old, value, true)
    invalidate(this.listReaders, old, value, false)
    for (const index of this.indexes) this.#updateIndex(index, key, old, value)
  }

  addIndex(index: IndexTable): void {
    this.indexes.push(index)
    for (const [key, value] of this.#values) this.#updateIndex(index, key, undefined, value)
  }

  subscribe(listener: (changes: readonly Change<T>[]) => void): () => void {
    this.graph.refuseWhileComputing('subscribing')
    const own = (changes: readonly Change<T>[]): void => listener(changes)
    this.#listeners.add(own)
    if (this.size > 0) own([...this.entries()].map(([key, value]) => ({ kind: 'added', key, new: value })))
    return () => void this.#listeners.delete(own)
  }

  /** Ends the wave: the calls that tell each listener what changed in it. */
  takeNotifications(): (() => void)[] {
    const wave = this.#wave
    if (wave.size === 0) return []
    this.#wave = new Map()
    for (const { before } of this.indexes) {
      before.noted = 0
      before.members.clear()
    }
    if (this.#listeners.size === 0) return []
    const changes = [...wave].flatMap(([key, old]) => this.#changeOf(key, old))
    if (changes.length === 0) return []
    return [...this.#listeners].map((listener) => () => {
      if (this.#listeners.has(listener)) listener(changes)
    })
  }

  becomeSynced(): void {
    this.synced = true
    this.#resolveSynced()
  }

  #isChanging(): boolean {
    return this.#wave.size > 0 && this.graph.isMidWave
  }

  *#entriesBefore(): Iterable<readonly [string, T]> {
    for (const [key, value] of this.#values) {
      if (!this.#wave.has(key)) yield [key, value]
    }
    for (const [key, old] of this.#wave) if (old !== undefined) yield [key, old]
  }

  #noteBefore(index: IndexTable): void {
    const { before } = index
    for (const [key, old] of Iterator.from(this.#wave).drop(before.noted)) {
      for (const indexKey of this.#indexKeys(index, key, old)) {
        before.members.set(indexKey, (before.members.get(indexKey) ?? new Set()).add(key))
      }
    }
    before.noted = this.#wave.size
  }

  #changeOf(key: string, old: T | undefined): Change<T>[] {
    const value = this.#values.get(key)
    if (value === undefined) return old === undefined ? [] : [{ kind: 'removed', key, old }]
    if (old === undefined) return [{ kind: 'added', key, new: value }]
    if (Object.is(old, value) || this.#equals(old, value)) return []
    return [{ kind: 'updated', key, old, new: value }]
  }

  /** A value whose keys cannot be told is under none: the others must not suffer. */
  #indexKeys(index: IndexTable, key: string, value: T | undefined): Set<string> {
    if (value === undefined) return new Set()
    try {
      return new Set(index.keysOf(value, key))
    } catch (error) {
      this.graph.report({ kind: 'index-failed', collection: this.name, index: index.name, key, error })
      return new Set()
    }
  }

  #updateIndex(index: IndexTable, key: string, old: T | undefined, value: T | undefined): void {
    const before = this.#indexKeys(index, key, old)
    const after = this.#indexKeys(index, key, value)
    for (const indexKey of before) {
      index.sorted.delete(indexKey)
      if (after.has(indexKey)) continue
      const members = index.members.get(indexKey)
      members?.delete(key)
      if (members?.size === 0) index.members.delete(indexKey)
      invalidate(index.readers.get(indexKey), old, undefined, false)
    }
    for (const indexKey of after) {
      index.sorted.delete(indexKey)
      if (before.has(indexKey)) {
        invalidate(index.readers.get(indexKey), old, value, false)
        continue
      }
      const members = index.members.get(indexKey) ?? new Set()
      index.members.set(indexKey, members.add(key))
      invalidate(index.readers.get(indexKey), undefined, value, false)
    }
  }
}

/** The store where its values do not matter. */
export function erased<T>(store: Store<T>): Store<unknown> {
  return store as unknown as Store<unknown>
}

function invalidate(bag: Bag | undefined, old: unknown, value: unknown, byKey: boolean): void {
  if (bag === undefined) return
  for (const read of bag) if (concerns(read as Read, old, value, byKey)) read.run.invalidate()
}

function inKeyOrder<T>(keys: string[], values: ReadonlyMap<string, T>): readonly T[] {
  const ordered: T[] = []
  for (const key of keys.sort()) {
    const value = values.get(key)
    if (value !== undefined) ordered.push(value)
  }
  return ordered
}
