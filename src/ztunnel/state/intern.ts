// One copy of equal texts and port maps: thousands of workloads share their namespaces, nodes, services and ports.

export interface Interner {
  text(value: string): string
  ports(entries: readonly (readonly [servicePort: number, targetPort: number])[]): ReadonlyMap<number, number>
}

/** Then the collection starts anew, so that what was removed does not stay for ever. */
const limit = 50_000

export function createInterner(): Interner {
  const texts = new Map<string, string>()
  const portMaps = new Map<string, ReadonlyMap<number, number>>()
  return {
    text(value) {
      const known = texts.get(value)
      if (known !== undefined) return known
      if (texts.size >= limit) texts.clear()
      texts.set(value, value)
      return value
    },
    ports(entries) {
      const key = entries.join(';')
      const known = portMaps.get(key)
      if (known !== undefined) return known
      if (portMaps.size >= limit) portMaps.clear()
      const map = new Map(entries)
      portMaps.set(key, map)
      return map
    },
  }
}
