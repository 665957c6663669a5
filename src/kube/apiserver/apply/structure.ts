// How a value divides into fields that can be owned one by one, which its schema decides.
import type { Schema } from '../../../api/index.ts'
import { isObject, type JsonObject } from '../json.ts'

export type Structure =
  | { readonly kind: 'leaf' }
  | { readonly kind: 'map'; readonly value: JsonObject }
  | { readonly kind: 'list'; readonly items: ReadonlyMap<string, { readonly value: unknown; readonly index: number }> }

/** Empty containers, scalars, null and what the schema calls atomic are leaves. */
export function structureOf(value: unknown, schema: Schema | undefined): Structure {
  if (Array.isArray(value)) {
    const type = schema?.['x-kubernetes-list-type'] ?? 'atomic'
    if (type === 'atomic' || value.length === 0) return { kind: 'leaf' }
    const items = new Map<string, { value: unknown; index: number }>()
    value.forEach((item, index) => {
      const element = type === 'set' ? `v:${JSON.stringify(item)}` : keyElement(item, schema)
      items.set(element, { value: item, index })
    })
    return { kind: 'list', items }
  }
  if (isObject(value)) {
    if (schema?.['x-kubernetes-map-type'] === 'atomic' || Object.keys(value).length === 0) return { kind: 'leaf' }
    return { kind: 'map', value }
  }
  return { kind: 'leaf' }
}

function keyElement(item: unknown, schema: Schema | undefined): string {
  const keys = [...(schema?.['x-kubernetes-list-map-keys'] ?? [])].sort()
  const values: JsonObject = {}
  for (const key of keys) {
    const value = (isObject(item) ? item[key] : undefined) ?? defaultOfKey(schema?.items, key)
    if (value !== undefined) values[key] = value
  }
  return `k:${JSON.stringify(values)}`
}

/** A key that a client may leave out: an item without it is the same as one with its default. */
function defaultOfKey(item: Schema | undefined, key: string): unknown {
  const own = item?.properties?.[key]?.default
  if (own !== undefined) return own
  const isBuiltIn = item?.definition?.startsWith('io.k8s.api.core.') === true
  return isBuiltIn && key === 'protocol' ? 'TCP' : undefined
}

/** The schema of a field of an object; undefined when it is not described. */
export function schemaOfField(schema: Schema | undefined, name: string): Schema | undefined {
  const own = schema?.properties?.[name]
  if (own !== undefined) return own
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined
}

/** A key of a map (not a field of a struct) can be owned itself, apart from what is below it. */
export function isMapKey(schema: Schema | undefined, name: string): boolean {
  return schema?.properties?.[name] === undefined
}
