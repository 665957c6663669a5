// Strategic merge patch: a merge patch in which lists of built-in kinds merge by the keys that their schema names.
import type { Schema } from '../../../api/index.ts'
import { badRequest } from '../errors.ts'
import { isObject, type JsonObject, jsonEqual } from '../json.ts'

const directive = '$patch'
const retainKeys = '$retainKeys'
const deletePrefix = '$deleteFromPrimitiveList/'
const orderPrefix = '$setElementOrder/'

/** The target with the patch applied; the target is not changed. Throws 400 when the patch is malformed. */
export function strategicMergePatch(target: unknown, patch: unknown, schema: Schema | undefined): unknown {
  if (!isObject(patch)) throw badRequest('a strategic merge patch must be a JSON object')
  return mergeObject(isObject(target) ? target : {}, patch, schema)
}

function mergeObject(target: JsonObject, patch: JsonObject, schema: Schema | undefined): JsonObject {
  const how = patch[directive]
  if (how === 'replace') return withoutDirectives(patch)
  if (how === 'delete') return {}
  if (how !== undefined && how !== 'merge') throw badRequest(`unknown patch type found: ${JSON.stringify(how)}`)
  const result = retained(target, patch)
  for (const [key, value] of Object.entries(patch)) {
    if (key === directive || key === retainKeys || key === '__proto__') continue
    if (key.startsWith(deletePrefix)) {
      const field = key.slice(deletePrefix.length)
      const gone = listOf(value, key)
      const list = result[field]
      if (Array.isArray(list)) result[field] = list.filter((item) => !gone.some((one) => jsonEqual(one, item)))
    } else if (!key.startsWith(orderPrefix)) {
      mergeField(result, key, value, fieldSchema(schema, key))
    }
  }
  for (const [key, order] of Object.entries(patch)) {
    if (!key.startsWith(orderPrefix)) continue
    const field = key.slice(orderPrefix.length)
    const list = result[field]
    if (Array.isArray(list)) result[field] = ordered(list, listOf(order, key), mergeKeyOf(fieldSchema(schema, field)))
  }
  return result
}

function mergeField(result: JsonObject, key: string, value: unknown, schema: Schema | undefined): void {
  const before = result[key]
  if (value === null) delete result[key]
  else if (isObject(value)) {
    if (value[directive] === 'delete') delete result[key]
    else result[key] = mergeObject(isObject(before) && !replaces(schema) ? before : {}, value, schema)
  } else if (Array.isArray(value) && merges(schema)) {
    result[key] = mergeList(Array.isArray(before) ? before : [], value, schema)
  } else result[key] = value
}

/** `$retainKeys` names the keys of the result: others of the target are dropped. */
function retained(target: JsonObject, patch: JsonObject): JsonObject {
  const kept = patch[retainKeys]
  if (kept === undefined) return { ...target }
  const names = listOf(kept, retainKeys)
  return Object.fromEntries(Object.entries(target).filter(([key]) => names.includes(key)))
}

function mergeList(target: readonly unknown[], patch: readonly unknown[], schema: Schema | undefined): unknown[] {
  const key = mergeKeyOf(schema)
  const isReplaced = patch.some((item) => isObject(item) && item[directive] === 'replace')
  if (isReplaced) {
    const rest = patch.filter(
      (item) => !(isObject(item) && item[directive] === 'replace' && Object.keys(item).length === 1),
    )
    return rest.map((item) => (isObject(item) ? withoutDirectives(item) : item))
  }
  if (key === undefined) {
    const added = patch.filter((item) => !target.some((old) => jsonEqual(old, item)))
    return [...target, ...added]
  }
  const result = [...target]
  for (const item of patch) {
    if (!isObject(item)) throw badRequest(`expected objects in a list that merges by "${key}"`)
    const id = item[key]
    if (id === undefined) throw badRequest(`map: ${JSON.stringify(item)} does not contain declared merge key: ${key}`)
    const index = result.findIndex((old) => isObject(old) && jsonEqual(old[key], id))
    if (item[directive] === 'delete') {
      if (index >= 0) result.splice(index, 1)
    } else if (index < 0) result.push(mergeObject({}, item, schema?.items))
    else {
      const old = result[index]
      result[index] = mergeObject(isObject(old) ? old : {}, item, schema?.items)
    }
  }
  return result
}

/** Items that `order` names come in its order; the others keep their place relative to their neighbours. */
function ordered(list: readonly unknown[], order: readonly unknown[], key: string | undefined): unknown[] {
  const idOf = (item: unknown) => (key !== undefined && isObject(item) ? item[key] : item)
  const place = (item: unknown) => order.findIndex((one) => jsonEqual(idOf(one), idOf(item)))
  const named = list.filter((item) => place(item) >= 0).sort((a, b) => place(a) - place(b))
  const result: unknown[] = []
  let next = 0
  for (const item of list) {
    if (place(item) < 0) result.push(item)
    else {
      result.push(named[next])
      next += 1
    }
  }
  return result
}

function fieldSchema(schema: Schema | undefined, key: string): Schema | undefined {
  const own = schema?.properties?.[key]
  if (own !== undefined) return own
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined
}

function strategies(schema: Schema | undefined): readonly string[] {
  return schema?.['x-kubernetes-patch-strategy']?.split(',') ?? []
}

function merges(schema: Schema | undefined): boolean {
  return strategies(schema).includes('merge')
}

function replaces(schema: Schema | undefined): boolean {
  return strategies(schema).includes('replace')
}

function mergeKeyOf(schema: Schema | undefined): string | undefined {
  return schema?.['x-kubernetes-patch-merge-key']
}

function listOf(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw badRequest(`${what} must be a list`)
  return value
}

function withoutDirectives(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([key]) => !key.startsWith('$')))
}
