// The reads of a derivation's run: recorded so that a change of an answer computes the run again.
import { isDeepStrictEqual } from 'node:util'
import type { IndexTable, Store } from './store.ts'

/** One computation of a derivation for one key. */
export interface Run {
  readonly key: string
  /** Notes that it is to be made again. */
  invalidate(): void
}

export interface Read {
  readonly run: Run
  readonly store: Store<unknown>
  /** Where the read is registered; absent for reads of a whole collection. */
  readonly index: IndexTable | undefined
  readonly key: string | undefined
  /** These may change from run to run, while what is read stays. */
  where: ((value: never) => boolean) | undefined
  select: ((value: never) => unknown) | undefined
}

export type Bag = Set<Read>

/** Whether the change of one value (undefined: absent) can change the answer of the read. */
export function concerns(read: Read, old: unknown, value: unknown, byKey: boolean): boolean {
  const { where, select } = read
  if (where === undefined && select === undefined) return true
  try {
    if (byKey) return select === undefined || !isDeepStrictEqual(select(old as never), select(value as never))
    const before = old !== undefined && (where === undefined || where(old as never))
    const after = value !== undefined && (where === undefined || where(value as never))
    if (before !== after) return true
    if (!after) return false
    return select === undefined || !isDeepStrictEqual(select(old as never), select(value as never))
  } catch {
    // The run itself meets the error, where it is reported.
    return true
  }
}

/** A second record of the same read is harmless: runs with many reads are not searched for one. */
const maxSearched = 32

/** What a run has read. A run that reads the same as the last time keeps its records: most do. */
export class ReadList {
  readonly #run: Run
  readonly #reads: Read[] = []
  #at = 0

  constructor(run: Run) {
    this.#run = run
  }

  get all(): readonly Read[] {
    return this.#reads
  }

  begin(): void {
    this.#at = 0
  }

  record(
    store: Store<unknown>,
    index: IndexTable | undefined,
    key: string | undefined,
    where: Read['where'],
    select: Read['select'],
  ): void {
    const isSame = (read: Read): boolean => read.store === store && read.index === index && read.key === key
    if (where === undefined && select === undefined) {
      for (let at = 0; at < this.#at && at < maxSearched; at += 1) {
        const read = this.#reads[at]
        if (read !== undefined && read.where === undefined && read.select === undefined && isSame(read)) return
      }
    }
    const known = this.#reads[this.#at]
    if (known !== undefined && isSame(known)) {
      known.where = where
      known.select = select
    } else {
      this.#forgetFrom(this.#at)
      const read: Read = { run: this.#run, store, index, key, where, select }
      this.#reads.push(read)
      bagOf(read).add(read)
    }
    this.#at += 1
  }

  /** Forgets the reads of the last run that this one did not make. */
  end(): void {
    this.#forgetFrom(this.#at)
  }

  clear(): void {
    this.#forgetFrom(0)
  }

  #forgetFrom(at: number): void {
    if (at < this.#reads.length) for (const read of this.#reads.splice(at)) forget(read)
  }
}

function forget(read: Read): void {
  const { store, index, key } = read
  if (key === undefined) {
    store.listReaders.delete(read)
    return
  }
  const bags = index === undefined ? store.keyReaders : index.readers
  const bag = bags.get(key)
  if (bag?.delete(read) !== true || bag.size > 0) return
  bags.delete(key)
  if (index === undefined) store.options.released?.(key)
}

function bagOf({ store, index, key }: Read): Bag {
  if (key === undefined) return store.listReaders
  const bags = index === undefined ? store.keyReaders : index.readers
  const known = bags.get(key)
  if (known !== undefined) return known
  const bag: Bag = new Set()
  bags.set(key, bag)
  return bag
}
