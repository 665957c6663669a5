// The order of computation: what is read is computed before what reads it.
import { CollectionCycleError } from './errors.ts'
import type { Store } from './store.ts'

/** Notes that one collection reads another. Throws a CollectionCycleError where that closes a circle. */
export function connect(reader: Store<unknown>, read: Store<unknown>): void {
  const circle = pathBetween(read, reader)
  if (circle !== undefined) throw new CollectionCycleError([reader.name, ...circle.map((store) => store.name)])
  reader.upstream.add(read)
  read.downstream.add(reader)
  raise(reader, read.height + 1)
}

/** The store to compute first. */
export function lowest(stores: Iterable<Store<unknown>>): Store<unknown> | undefined {
  let found: Store<unknown> | undefined
  for (const store of stores) if (found === undefined || store.height < found.height) found = store
  return found
}

/** The collections from one to another along what they read, both included. */
function pathBetween(from: Store<unknown>, to: Store<unknown>): Store<unknown>[] | undefined {
  if (from === to) return [from]
  if (from.height <= to.height) return undefined
  for (const next of from.upstream) {
    const rest = pathBetween(next, to)
    if (rest !== undefined) return [from, ...rest]
  }
  return undefined
}

function raise(store: Store<unknown>, height: number): void {
  if (store.height >= height) return
  store.height = height
  for (const downstream of store.downstream) raise(downstream, height + 1)
}
