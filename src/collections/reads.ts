// The reads of a derivation's run: recorded so that a change of an answer computes the run again.
import { isDeepStrictEqual } from 'node:util'
import type { IndexTable, Store } from './store.ts'

/** One computation of a derivation for one key, and what it read the last time. */
export interface Run {
  readonly key: string
  readonly reads: Read[]
  /** Notes that it is to be made again. */
  invalidate(): void
}

export interface Read {
  readonly run: Run
  readonly store: Store<unknown>
  /** Where the read is registered; absent for reads of a whole collection. */
  readonly index?: IndexTable
  readonly key?: string
  readonly where?: ((value: never) => boolean) | undefined
  readonly select?: ((value: never) => unknown) | undefined
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

/** Puts the read where the changes it depends on are looked up. */
export function register(read: Read): void {
  if (hasEqualRead(read)) return
  read.run.reads.push(read)
  bagOf(read, true)?.add(read)
}

/** Forgets all reads of a run. */
export function forgetReads(run: Run): void {
  for (const read of run.reads) {
    const bag = bagOf(read, false)
    bag?.delete(read)
    if (bag?.size !== 0 || read.key === undefined) continue
    if (read.index !== undefined) read.index.readers.delete(read.key)
    else {
      read.store.keyReaders.delete(read.key)
      read.store.options.released?.(read.key)
    }
  }
  run.reads.length = 0
}

function bagOf(read: Read, create: boolean): Bag | undefined {
  if (read.key === undefined) return read.store.listReaders
  const bags = read.index === undefined ? read.store.keyReaders : read.index.readers
  const known = bags.get(read.key)
  if (known !== undefined || !create) return known
  const bag: Bag = new Set()
  bags.set(read.key, bag)
  return bag
}

// A second record of the same read is harmless: runs with many reads are not searched for one.
const maxSearched = 32

function hasEqualRead(read: Read): boolean {
  if (read.run.reads.length > maxSearched) return false
  return read.run.reads.some(
    (other) =>
      other.store === read.store &&
      other.key === read.key &&
      other.index === read.index &&
      other.where === read.where &&
      other.select === read.select,
  )
}
