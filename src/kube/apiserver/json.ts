// Small questions about JSON values.
export type JsonObject = Record<string, unknown>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function clone<T>(value: T): T {
  return value === undefined ? value : JSON.parse(JSON.stringify(value))
}

/** Equality of JSON values; the order of keys is of no matter, a key with `undefined` is absent. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false
    return a.every((item, index) => jsonEqual(item, b[index]))
  }
  if (!isObject(a) || !isObject(b)) return false
  for (const key of Object.keys(a)) if (!jsonEqual(a[key], b[key])) return false
  for (const key of Object.keys(b)) if (b[key] !== undefined && a[key] === undefined) return false
  return true
}

/** The value at a dotted path of plain field names; undefined where the path ends early. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  let here = value
  for (const step of path) {
    if (!isObject(here)) return undefined
    here = here[step]
  }
  return here
}
