// Connections of which no caller has proved who it is yet: so many and no more, and of no address at the cost of others.

export interface Unproven<C> {
  /** Returns the connection that has to make room, if one has to. */
  add(address: string, connection: C): C | undefined
  delete(address: string, connection: C): void
  all(): readonly C[]
  readonly size: number
}

/** Room is made by the address with most connections, which gives up its oldest. */
export function createUnproven<C>(most: number): Unproven<C> {
  const byAddress = new Map<string, Set<C>>()
  let size = 0

  function crowd(): C | undefined {
    let largest: Set<C> | undefined
    for (const set of byAddress.values()) if (set.size > (largest?.size ?? 0)) largest = set
    const [oldest] = largest ?? []
    return oldest
  }

  return {
    add(address, connection) {
      const set = byAddress.get(address) ?? new Set()
      byAddress.set(address, set.add(connection))
      size += 1
      return size > most ? crowd() : undefined
    },
    delete(address, connection) {
      const set = byAddress.get(address)
      if (set === undefined || !set.delete(connection)) return
      size -= 1
      if (set.size === 0) byAddress.delete(address)
    },
    all: () => [...byAddress.values()].flatMap((set) => [...set]),
    get size() {
      return size
    },
  }
}
