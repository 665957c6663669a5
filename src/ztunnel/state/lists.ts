// Decoded lists of a thread (the endpoints of a service, say), kept until what they were made from changes.
import type { TableView } from '../../shared-memory/index.ts'
import { entryAt } from './tables.ts'

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

/** What was decoded from a place that is an entry of a map. */
export interface Located<T> {
  readonly place: number
  readonly generation: number
  readonly order: number
  readonly value: T
}

/** The decoded entries of a map as it was in one generation, in their order. */
export interface Entries<T> extends Sized {
  readonly version: number
  readonly located: readonly Located<T>[]
}

export interface Decoding<T> {
  load(place: number): T
  /** The key of the entry. */
  keyOf(value: T): string
}

/** Of what was decoded before only what has changed since is looked at again. */
export function readEntries<T>(
  view: TableView,
  map: number,
  before: Entries<T> | undefined,
  { load, keyOf }: Decoding<T>,
): Entries<T> {
  const version = view.generationOf(map)
  const changed = before === undefined ? view.leavesIn(map) : view.leavesSince(map, before.version)
  const located = changed.map((entry) => {
    const { place, order } = entryAt(view, entry)
    return { place, order, generation: view.generationOf(place), value: load(place) }
  })
  // An entry that is put anew comes after all that were there.
  located.sort((a, b) => a.order - b.order)
  if (before === undefined) return { version, size: located.length, located }
  const replaced = new Set(changed.map((entry) => view.keyOf(entry)))
  let kept = before.located.filter(({ value }) => !replaced.has(keyOf(value)))
  if (kept.length + located.length !== view.sizeOf(map)) {
    const present = new Set(view.leavesIn(map).map((entry) => entryAt(view, entry).place))
    kept = kept.filter(({ place, generation }) => present.has(place) && view.generationOf(place) === generation)
  }
  const all = kept.concat(located)
  return { version, size: all.length, located: all }
}
