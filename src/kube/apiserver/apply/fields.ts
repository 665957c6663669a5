// The fields of an object, and the fields in which two objects differ.
import type { KubeObject, Schema } from '../../../api/index.ts'
import { isObject, jsonEqual } from '../json.ts'
import { child, emptyTree, type FieldTree } from './field-tree.ts'
import { isMapKey, schemaOfField, structureOf } from './structure.ts'

/** What identifies an object or is set by the server is nobody's field. */
const unownedMetadata = [
  'name',
  'namespace',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'managedFields',
  'selfLink',
]

export function fieldsOf(object: KubeObject, schema: Schema | undefined): FieldTree {
  const tree = emptyTree()
  collect(object, schema, tree)
  return withoutUnowned(tree)
}

export interface Difference {
  /** Fields that the new object adds or has with another value. */
  readonly changed: FieldTree
  /** Fields that only the old object has. */
  readonly removed: FieldTree
}

export function compareFields(old: KubeObject | undefined, next: KubeObject, schema: Schema | undefined): Difference {
  const changed = emptyTree()
  const removed = emptyTree()
  if (old === undefined) collect(next, schema, changed)
  else compare(old, next, schema, changed, removed)
  return { changed: withoutUnowned(changed), removed: withoutUnowned(removed) }
}

function withoutUnowned(tree: FieldTree): FieldTree {
  tree.self = false
  tree.children.delete('f:apiVersion')
  tree.children.delete('f:kind')
  const metadata = tree.children.get('f:metadata')
  if (metadata !== undefined) {
    metadata.self = false
    for (const name of unownedMetadata) metadata.children.delete(`f:${name}`)
    if (metadata.children.size === 0) tree.children.delete('f:metadata')
  }
  return tree
}

function collect(value: unknown, schema: Schema | undefined, tree: FieldTree): void {
  if (value === undefined) return
  const structure = structureOf(value, schema)
  switch (structure.kind) {
    case 'leaf':
      tree.self = true
      return
    case 'map':
      for (const [name, below] of Object.entries(structure.value)) {
        if (below === undefined) continue
        const node = child(tree, `f:${name}`)
        if (isMapKey(schema, name)) node.self = true
        collect(below, schemaOfField(schema, name), node)
      }
      return
    case 'list':
      for (const [element, item] of structure.items) {
        const node = child(tree, element)
        node.self = true
        if (isObject(item.value)) collect(item.value, schema?.items, node)
      }
  }
}

function compare(a: unknown, b: unknown, schema: Schema | undefined, changed: FieldTree, removed: FieldTree): void {
  if (a === b || (a === undefined && b === undefined)) return
  if (a === undefined) {
    collect(b, schema, changed)
    return
  }
  if (b === undefined) {
    collect(a, schema, removed)
    return
  }
  const [left, right] = [structureOf(a, schema), structureOf(b, schema)]
  if (left.kind === 'map' && right.kind === 'map') {
    const names = new Set([...Object.keys(left.value), ...Object.keys(right.value)])
    for (const name of names) {
      const [before, after] = [left.value[name], right.value[name]]
      if (before !== undefined && after !== undefined) {
        if (jsonEqual(before, after)) continue
        compare(before, after, schemaOfField(schema, name), child(changed, `f:${name}`), child(removed, `f:${name}`))
      } else {
        const node = child(after === undefined ? removed : changed, `f:${name}`)
        if (isMapKey(schema, name)) node.self = true
        collect(after ?? before, schemaOfField(schema, name), node)
      }
    }
  } else if (left.kind === 'list' && right.kind === 'list') {
    for (const element of new Set([...left.items.keys(), ...right.items.keys()])) {
      const [before, after] = [left.items.get(element)?.value, right.items.get(element)?.value]
      if (before !== undefined && after !== undefined) {
        compare(before, after, schema?.items, child(changed, element), child(removed, element))
      } else {
        const node = child(after === undefined ? removed : changed, element)
        node.self = true
        if (isObject(after ?? before)) collect(after ?? before, schema?.items, node)
      }
    }
  } else if (!jsonEqual(a, b)) {
    if (left.kind !== 'leaf') collect(a, schema, removed)
    collect(b, schema, changed)
  }
}
