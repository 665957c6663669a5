// Puts an applied configuration into an object, and takes out what the applier no longer wants.
import type { Schema } from '../../../api/index.ts'
import { isObject, type JsonObject } from '../json.ts'
import { type FieldTree, isEmpty } from './field-tree.ts'
import { schemaOfField, structureOf } from './structure.ts'

/** The object with every field of the configuration; neither is changed. */
export function mergeApplied(current: unknown, applied: unknown, schema: Schema | undefined): unknown {
  const [left, right] = [structureOf(current, schema), structureOf(applied, schema)]
  if (right.kind === 'map') {
    const result: JsonObject = left.kind === 'map' ? { ...left.value } : {}
    for (const [name, value] of Object.entries(right.value)) {
      if (name === '__proto__') continue
      if (value === null) delete result[name]
      else result[name] = mergeApplied(result[name], value, schemaOfField(schema, name))
    }
    return result
  }
  if (right.kind === 'list' && left.kind === 'list') {
    const result = [...left.items.values()].map((item) => item.value)
    for (const [element, { value }] of right.items) {
      const place = [...left.items.keys()].indexOf(element)
      if (place < 0) result.push(value)
      else result[place] = mergeApplied(result[place], value, schema?.items)
    }
    return result
  }
  // An empty object or list in the configuration asks that it exists, not that it is emptied.
  if (right.kind === 'leaf' && left.kind !== 'leaf' && isEmptyContainer(applied)) return current
  return applied
}

function isEmptyContainer(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0
}

/** The value without the fields of `gone`; what `kept` (fields of others) still needs stays. Undefined when nothing is left. */
export function removeFields(
  value: unknown,
  schema: Schema | undefined,
  gone: FieldTree,
  kept: FieldTree | undefined,
): unknown {
  if (gone.self && (kept === undefined || isEmpty(kept))) return undefined
  const structure = structureOf(value, schema)
  switch (structure.kind) {
    case 'leaf':
      return value
    case 'map': {
      const result: JsonObject = {}
      for (const [name, below] of Object.entries(structure.value)) {
        const tree = gone.children.get(`f:${name}`)
        const rest =
          tree === undefined
            ? below
            : removeFields(below, schemaOfField(schema, name), tree, kept?.children.get(`f:${name}`))
        if (rest !== undefined) result[name] = rest
      }
      return Object.keys(result).length === 0 ? undefined : result
    }
    case 'list': {
      const result: unknown[] = []
      for (const [element, item] of structure.items) {
        const tree = gone.children.get(element)
        const rest =
          tree === undefined ? item.value : removeFields(item.value, schema?.items, tree, kept?.children.get(element))
        if (rest !== undefined) result.push(rest)
      }
      return result.length === 0 ? undefined : result
    }
  }
}
