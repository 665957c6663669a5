import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Schema } from '../../../api/index.ts'
import { strategicMergePatch } from './strategic.ts'

const item: Schema = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    value: { type: 'string' },
    ports: {
      type: 'array',
      items: { type: 'object', properties: { port: { type: 'integer' } } },
      'x-kubernetes-patch-merge-key': 'port',
      'x-kubernetes-patch-strategy': 'merge',
    },
  },
}
const schema: Schema = {
  type: 'object',
  properties: {
    containers: {
      type: 'array',
      items: item,
      'x-kubernetes-patch-merge-key': 'name',
      'x-kubernetes-patch-strategy': 'merge',
    },
    finalizers: { type: 'array', items: { type: 'string' }, 'x-kubernetes-patch-strategy': 'merge' },
    args: { type: 'array', items: { type: 'string' } },
    strategy: { type: 'object', 'x-kubernetes-patch-strategy': 'retainKeys' },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
  },
}

const target = {
  containers: [
    { name: 'a', value: '1', ports: [{ port: 80 }] },
    { name: 'b', value: '2' },
  ],
  finalizers: ['x', 'y'],
  args: ['1', '2'],
  strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } },
  labels: { a: '1', b: '2' },
}

const cases: readonly (readonly [string, unknown, object])[] = [
  [
    'items of a list merge by their key',
    { containers: [{ name: 'b', value: '3' }, { name: 'c' }] },
    { containers: [target.containers[0], { name: 'b', value: '3' }, { name: 'c' }] },
  ],
  [
    'lists inside items merge too',
    { containers: [{ name: 'a', ports: [{ port: 81 }] }] },
    { containers: [{ name: 'a', value: '1', ports: [{ port: 80 }, { port: 81 }] }, target.containers[1]] },
  ],
  [
    'an item is deleted by its key',
    { containers: [{ $patch: 'delete', name: 'a' }] },
    { containers: [target.containers[1]] },
  ],
  [
    'a list is replaced when asked',
    { containers: [{ $patch: 'replace' }, { name: 'z' }] },
    { containers: [{ name: 'z' }] },
  ],
  [
    'the order of items is set',
    { '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }], containers: [{ name: 'a', value: '9' }] },
    { containers: [target.containers[1], { name: 'a', value: '9', ports: [{ port: 80 }] }] },
  ],
  ['scalars of a merging list are added once', { finalizers: ['y', 'z'] }, { finalizers: ['x', 'y', 'z'] }],
  ['scalars are deleted from a list', { '$deleteFromPrimitiveList/finalizers': ['x'] }, { finalizers: ['y'] }],
  ['a list without a strategy is replaced', { args: ['3'] }, { args: ['3'] }],
  ['null deletes a field', { labels: { a: null } }, { labels: { b: '2' } }],
  ['an object is replaced when asked', { labels: { $patch: 'replace', c: '3' } }, { labels: { c: '3' } }],
  ['an object is deleted when asked', { labels: { $patch: 'delete' } }, { labels: undefined }],
  [
    'only the retained keys stay',
    { strategy: { $retainKeys: ['type'], type: 'Recreate' } },
    { strategy: { type: 'Recreate' } },
  ],
]

for (const [name, patch, changed] of cases) {
  test(name, () => {
    const before = JSON.stringify(target)
    const result = strategicMergePatch(target, patch, schema)
    assert.deepEqual(JSON.parse(JSON.stringify(result)), JSON.parse(JSON.stringify({ ...target, ...changed })))
    assert.equal(JSON.stringify(target), before)
  })
}

test('an item without its merge key is refused', () => {
  assert.throws(() => strategicMergePatch(target, { containers: [{ value: '1' }] }, schema), { code: 400 })
})
