// A bounded memory of what was used lately.

export interface Recent<K, V> {
  get(key: K): V | undefined
  set(key: K, value: V): void
}

/** Keeps at least the last `size` used, at most twice as many. */
export function createRecent<K, V>(size: number): Recent<K, V> {
  let young = new Map<K, V>()
  let old = new Map<K, V>()
  function set(key: K, value: V): void {
    if (young.size >= size) {
      old = young
      young = new Map()
    }
    young.set(key, value)
  }
  return {
    get(key) {
      const found = young.get(key)
      if (found !== undefined) return found
      const kept = old.get(key)
      if (kept === undefined) return undefined
      old.delete(key)
      set(key, kept)
      return kept
    },
    set,
  }
}
