import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonPatch } from './json-patch.ts'
import { mergePatch } from './merge.ts'

test('a merge patch sets, deletes, and replaces lists whole', () => {
  const target = { a: 1, b: { c: 1, d: 2 }, list: [1, 2] }
  assert.deepEqual(mergePatch(target, { a: null, b: { c: null, e: { f: null, g: 1 } }, list: [3] }), {
    b: { d: 2, e: { g: 1 } },
    list: [3],
  })
  assert.deepEqual(target, { a: 1, b: { c: 1, d: 2 }, list: [1, 2] })
})

test('a merge patch can not reach the prototype', () => {
  mergePatch({}, JSON.parse('{"__proto__":{"polluted":true}}'))
  assert.equal(Reflect.get({}, 'polluted'), undefined)
})

test('a JSON patch applies its operations in order', () => {
  const target = { list: ['a'], labels: { 'a/b': '1' } }
  const patch = [
    { op: 'test', path: '/list/0', value: 'a' },
    { op: 'add', path: '/list/-', value: 'b' },
    { op: 'remove', path: '/labels/a~1b' },
  ]
  assert.deepEqual(jsonPatch(target, patch), { list: ['a', 'b'], labels: {} })
  assert.deepEqual(target.list, ['a'])
})

test('a JSON patch whose test fails is refused with what failed', () => {
  const patch = [{ op: 'test', path: '/a', value: 2 }]
  assert.throws(() => jsonPatch({ a: 1 }, patch), { code: 422, message: /operation 0 \(test \/a\)/ })
})

test('what is no JSON patch is refused', () => {
  assert.throws(() => jsonPatch({}, {}), { code: 400 })
  assert.throws(() => jsonPatch({}, [{ op: 'jump', path: '/a' }]), { code: 400 })
})
