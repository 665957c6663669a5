// Decoded lists of a thread (the endpoints of a service, say), kept until what they were made from changes.
import type { TableView } from '../../shared-memory/index.ts'
import type { Ordered } from './tables.ts'

export interface Sized {
  readonly size: number
}

export interface Lists<L extends Sized> {
  /** The same list while `version` is the same. `make` gets the list that was there before. */
  get(key: string, version: number, make: (before: L | undefined) => L): L
}

/** Beyond so many items in all lists, those not used for longest go; the one asked for stays, however long. */
export function createLists<L extends Sized>(mostItems: number): Lists<L> {
  const lists = new Map<string, { readonly version: number; readonly list: L }>()
  let items = 0
  let latest = ''

  function drop(key: string, list: L): void {
    lists.delete(key)
    items -= list.size + 1
  }

  return {
    get(key, version, make) {
      const known = lists.get(key)
      if (known?.version === version) {
        if (key !== latest) {
          lists.delete(key)
          lists.set(key, known)
          latest = key
        }
        return known.list
      }
      const list = make(known?.list)
      if (known !== undefined) drop(key, known.list)
      lists.set(key, { version, list })
      items += list.size + 1
      latest = key
      for (const [other, one] of lists) {
        if (items <= mostItems || other === key) break
        drop(other, one.list)
      }
      return list
    },
  }
}

/** What was decoded from a leaf. */
export interface Located<T> {
  readonly leaf: number
  readonly order: number
  readonly generation: number
  readonly value: T
}

/** The decoded values of the places; of those that were there before only what has changed is decoded. */
export function loadAgain<T>(
  view: TableView,
  entries: readonly Ordered[],
  before: readonly Located<T>[],
  load: (leaf: number) => T,
): readonly Located<T>[] {
  const known = new Map(before.map((one) => [one.leaf, one]))
  return entries.map(({ place: leaf, order }) => {
    const generation = view.generationOf(leaf)
    const one = known.get(leaf)
    return one?.generation === generation ? one : { leaf, order, generation, value: load(leaf) }
  })
}
