// Decoded lists of a thread (the endpoints of a service, the policies of a namespace), kept until what they were made from changes.

export interface Lists<T> {
  /** The same list while `version` is the same. `make` gets what the list before was. */
  get(key: string, version: number, make: (before: readonly T[]) => readonly T[]): readonly T[]
}

interface Entry<T> {
  readonly version: number
  readonly items: readonly T[]
}

/** Beyond so many items in all lists, those not used for longest go; the one asked for stays, however long. */
export function createLists<T>(mostItems: number): Lists<T> {
  const lists = new Map<string, Entry<T>>()
  let items = 0
  let latest = ''

  function drop(key: string, entry: Entry<T>): void {
    lists.delete(key)
    items -= entry.items.length + 1
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
        return known.items
      }
      const made = make(known?.items ?? [])
      if (known !== undefined) drop(key, known)
      lists.set(key, { version, items: made })
      items += made.length + 1
      latest = key
      for (const [other, entry] of lists) {
        if (items <= mostItems || other === key) break
        drop(other, entry)
      }
      return made
    },
  }
}
