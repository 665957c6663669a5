// Sets of fields of an object as trees, in memory and as the `fieldsV1` JSON of managedFields.
// Path elements: `f:<name>` a field or map key, `k:<json of the key fields>` a list item by its keys, `v:<json>` an item of a set.
import { isObject, type JsonObject } from '../json.ts'

export interface FieldTree {
  /** The path that leads here is in the set. */
  self: boolean
  readonly children: Map<string, FieldTree>
}

export function emptyTree(): FieldTree {
  return { self: false, children: new Map() }
}

export function isEmpty(tree: FieldTree): boolean {
  return !tree.self && [...tree.children.values()].every(isEmpty)
}

/** The subtree of an element, made when absent. */
export function child(tree: FieldTree, element: string): FieldTree {
  const known = tree.children.get(element)
  if (known !== undefined) return known
  const created = emptyTree()
  tree.children.set(element, created)
  return created
}

export function union(a: FieldTree, b: FieldTree): FieldTree {
  const result: FieldTree = { self: a.self || b.self, children: new Map(a.children) }
  for (const [element, tree] of b.children) {
    const own = a.children.get(element)
    result.children.set(element, own === undefined ? tree : union(own, tree))
  }
  return result
}

/** What is in `a` and not in `b`. */
export function difference(a: FieldTree, b: FieldTree): FieldTree {
  const result: FieldTree = { self: a.self && !b.self, children: new Map() }
  for (const [element, tree] of a.children) {
    const other = b.children.get(element)
    const rest = other === undefined ? tree : difference(tree, other)
    if (!isEmpty(rest)) result.children.set(element, rest)
  }
  return result
}

export function intersection(a: FieldTree, b: FieldTree): FieldTree {
  const result: FieldTree = { self: a.self && b.self, children: new Map() }
  for (const [element, tree] of a.children) {
    const other = b.children.get(element)
    if (other === undefined) continue
    const both = intersection(tree, other)
    if (!isEmpty(both)) result.children.set(element, both)
  }
  return result
}

/** The set as `fieldsV1`. */
export function treeToJson(tree: FieldTree): JsonObject {
  const result: JsonObject = {}
  if (tree.self && tree.children.size > 0) result['.'] = {}
  for (const element of [...tree.children.keys()].sort()) {
    const below = tree.children.get(element)
    if (below !== undefined && !isEmpty(below)) result[element] = treeToJson(below)
  }
  return result
}

export function treeFromJson(json: unknown): FieldTree {
  const root = read(json)
  // An empty object is a member only below the root.
  if (root.children.size === 0) root.self = false
  return root
}

function read(json: unknown): FieldTree {
  const tree = emptyTree()
  if (!isObject(json)) return tree
  const keys = Object.keys(json)
  tree.self = keys.length === 0 || keys.includes('.')
  for (const key of keys) if (key !== '.') tree.children.set(key, read(json[key]))
  return tree
}

/** The members as texts such as `.spec.containers[name="a"].image`, sorted. */
export function describePaths(tree: FieldTree): string[] {
  const found: string[] = []
  const walk = (here: FieldTree, path: string): void => {
    if (here.self) found.push(path)
    for (const [element, below] of here.children) walk(below, path + describeElement(element))
  }
  walk(tree, '')
  return found.sort()
}

function describeElement(element: string): string {
  const text = element.slice(2)
  switch (element[0]) {
    case 'k': {
      const keys: unknown = JSON.parse(text)
      const pairs = isObject(keys) ? Object.entries(keys).map(([key, value]) => `${key}=${JSON.stringify(value)}`) : []
      return `[${pairs.join(',')}]`
    }
    case 'v':
      return `[=${text}]`
    default:
      return `.${text}`
  }
}
