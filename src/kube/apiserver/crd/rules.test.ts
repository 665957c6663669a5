import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject, Schema } from '../../../api/index.ts'
import { compileRules } from './rules.ts'

const object = (spec: unknown): KubeObject => ({ apiVersion: 'a/v1', kind: 'A', metadata: { name: 'a' }, spec })

function check(spec: Schema, value: unknown, old?: unknown): string[] {
  const rules = compileRules({ type: 'object', properties: { spec } })
  const before = old === undefined ? undefined : object(old)
  return rules.check(object(value), before).map(({ field, message }) => `${field}: ${message}`)
}

const cases: readonly {
  readonly name: string
  readonly schema: Schema
  readonly value: unknown
  readonly old?: unknown
  readonly wanted: readonly string[]
}[] = [
  {
    name: 'a rule that holds says nothing',
    schema: {
      type: 'object',
      properties: { min: { type: 'integer' }, max: { type: 'integer' } },
      'x-kubernetes-validations': [{ rule: 'self.min <= self.max' }],
    },
    value: { min: 1, max: 2 },
    wanted: [],
  },
  {
    name: 'a broken rule is told with its message',
    schema: {
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'string' } },
      'x-kubernetes-validations': [{ rule: '!(has(self.a) && has(self.b))', message: 'only one of a or b' }],
    },
    value: { a: '1', b: '2' },
    wanted: ['spec: Invalid value: "object": only one of a or b'],
  },
  {
    name: 'durations are compared',
    schema: {
      type: 'string',
      'x-kubernetes-validations': [{ rule: "duration(self) >= duration('1ms')", message: 'too short' }],
    },
    value: '10us',
    wanted: ['spec: Invalid value: "10us": too short'],
  },
  {
    name: 'a field that may not change is compared with its old value',
    schema: {
      type: 'object',
      properties: {
        id: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'immutable' }] },
      },
    },
    value: { id: 'b' },
    old: { id: 'a' },
    wanted: ['spec.id: Invalid value: "b": immutable'],
  },
  {
    name: 'a comparison with an old value is left out when there is none',
    schema: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self == oldSelf' }] },
    value: 'b',
    wanted: [],
  },
  {
    name: 'elements are checked each, maps by key',
    schema: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: { type: 'integer' },
        'x-kubernetes-validations': [{ rule: "self.all(key, key != '' && self[key] > 0)" }],
      },
    },
    value: [{ a: 1 }, { b: 0 }],
    wanted: ['spec[1]: Invalid value: "object": failed rule: self.all(key, key != \'\' && self[key] > 0)'],
  },
]

for (const { name, schema, value, old, wanted } of cases) {
  test(name, () => assert.deepEqual(check(schema, value, old), wanted))
}

test('a rule with an unknown function is listed as not enforced', () => {
  const rules = compileRules({
    type: 'object',
    properties: { net: { type: 'string', 'x-kubernetes-validations': [{ rule: 'isCIDR(self)' }] } },
  })
  assert.deepEqual(rules.unsupported, ['net: isCIDR(self)'])
})
