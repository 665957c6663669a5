import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  child,
  describePaths,
  difference,
  emptyTree,
  type FieldTree,
  intersection,
  isEmpty,
  treeFromJson,
  treeToJson,
  union,
} from './field-tree.ts'

const path = fc.array(fc.constantFrom('f:a', 'f:b', 'k:{"name":"x"}', 'v:"y"'), { minLength: 1, maxLength: 4 })

function treeOf(paths: readonly (readonly string[])[]): FieldTree {
  const tree = emptyTree()
  for (const elements of paths) elements.reduce(child, tree).self = true
  return tree
}

const tree = fc.array(path, { maxLength: 12 }).map(treeOf)
const same = (a: FieldTree, b: FieldTree) => assert.deepEqual(treeToJson(a), treeToJson(b))

test('the JSON form says the same as the tree', () => {
  fc.assert(fc.property(tree, (a) => same(treeFromJson(treeToJson(a)), a)))
})

test('sets obey the laws of sets', () => {
  fc.assert(
    fc.property(tree, tree, (a, b) => {
      same(union(a, b), union(b, a))
      same(union(a, a), a)
      same(intersection(a, b), difference(a, difference(a, b)))
      same(union(difference(a, b), intersection(a, b)), a)
      assert.ok(isEmpty(difference(a, union(a, b))))
      assert.ok(isEmpty(intersection(difference(a, b), b)))
    }),
  )
})

test('paths are written as people read them', () => {
  const fields = treeFromJson({
    'f:spec': { 'f:ports': { 'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:name': {} } }, 'f:set': { 'v:"a"': {} } },
  })
  assert.deepEqual(describePaths(fields), [
    '.spec.ports[port=80,protocol="TCP"]',
    '.spec.ports[port=80,protocol="TCP"].name',
    '.spec.set[="a"]',
  ])
})
