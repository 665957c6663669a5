import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pruneUnknown, validateAgainst } from './schema-validation.ts'

const schema = { type: 'object', properties: { name: { type: 'string' } } } as const

test('names that every JavaScript object has are unknown fields like others', () => {
  const value: unknown = JSON.parse('{"name":"a","__proto__":{"x":1},"constructor":{"y":1},"toString":1}')
  assert.deepEqual(validateAgainst(schema, value), [])
  assert.deepEqual(pruneUnknown(schema, value), ['__proto__', 'constructor', 'toString'])
  assert.deepEqual(Object.getOwnPropertyNames(value), ['name'])
})

test('what is wrong is told with its path', () => {
  const list = { type: 'object', properties: { items: { type: 'array', items: schema } } } as const
  assert.deepEqual(
    validateAgainst(list, { items: [{ name: 'a' }, { name: 1 }] }, 'spec').map(({ field }) => field),
    ['spec.items[1].name'],
  )
})
