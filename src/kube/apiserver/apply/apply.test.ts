import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KindDefinition, KubeObject, Schema } from '../../../api/index.ts'
import { applyConfiguration } from './apply.ts'
import { trackUpdate } from './managed-fields.ts'

const schema: Schema = {
  type: 'object',
  properties: {
    metadata: {
      type: 'object',
      properties: { labels: { type: 'object', additionalProperties: { type: 'string' } } },
    },
    spec: {
      type: 'object',
      properties: {
        replicas: { type: 'integer' },
        selector: { type: 'object', 'x-kubernetes-map-type': 'atomic', additionalProperties: { type: 'string' } },
        args: { type: 'array', items: { type: 'string' } },
        finalizers: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
        ports: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['port', 'protocol'],
          items: {
            type: 'object',
            properties: {
              port: { type: 'integer' },
              protocol: { type: 'string', default: 'TCP' },
              name: { type: 'string' },
            },
          },
        },
      },
    },
  },
}
const kind: KindDefinition = {
  group: 'x.io',
  version: 'v1',
  kind: 'X',
  plural: 'xs',
  namespaced: true,
  listKind: 'XList',
  singular: 'x',
  subresources: {},
  schema,
}
const now = new Date('2026-01-01T00:00:00Z')

function x(spec: unknown, labels?: Record<string, string>): KubeObject {
  return {
    apiVersion: 'x.io/v1',
    kind: 'X',
    metadata: { name: 'x', ...(labels === undefined ? {} : { labels }) },
    spec,
  }
}

function apply(current: KubeObject | undefined, config: KubeObject, manager = 'a', force = false): KubeObject {
  return applyConfiguration(kind, current, config, { manager, apiVersion: 'x.io/v1', now, force })
}

test('what an applier no longer names is removed', () => {
  const first = apply(undefined, x({ replicas: 1, args: ['a'] }, { one: '1', two: '2' }))
  const second = apply(first, x({ replicas: 1 }, { one: '1' }))
  assert.deepEqual(second.spec, { replicas: 1 })
  assert.deepEqual(second.metadata.labels, { one: '1' })
})

test('what another manager also holds stays', () => {
  const first = apply(undefined, x({ replicas: 1 }))
  const shared = apply(first, x({ replicas: 1 }), 'b')
  assert.deepEqual(apply(shared, x({})).spec, { replicas: 1 })
})

test('another value for a field of another manager is a conflict that names the field', () => {
  const first = apply(undefined, x({ replicas: 1 }))
  assert.throws(() => apply(first, x({ replicas: 2 }), 'b'), {
    code: 409,
    message: 'Apply failed with 1 conflict: conflict with "a" using x.io/v1: .spec.replicas',
  })
})

test('force takes the field over, and the former owner loses it', () => {
  const first = apply(undefined, x({ replicas: 1, args: ['a'] }))
  const forced = apply(first, x({ replicas: 2 }), 'b', true)
  assert.deepEqual(forced.spec, { replicas: 2, args: ['a'] })
  // The former owner applies without the field: it is not its to remove.
  assert.deepEqual(apply(forced, x({ args: ['a'] })).spec, { replicas: 2, args: ['a'] })
})

test('items of a keyed list belong to whoever applied them; a key left out has its default', () => {
  const first = apply(undefined, x({ ports: [{ port: 80, name: 'http' }] }))
  const second = apply(
    first,
    x({
      ports: [
        { port: 80, protocol: 'UDP' },
        { port: 443, protocol: 'TCP' },
      ],
    }),
    'b',
  )
  assert.deepEqual(second.spec, {
    ports: [
      { port: 80, name: 'http' },
      { port: 80, protocol: 'UDP' },
      { port: 443, protocol: 'TCP' },
    ],
  })
  assert.deepEqual(apply(second, x({ ports: [{ port: 443 }] }), 'b').spec, {
    ports: [{ port: 80, name: 'http' }, { port: 443 }],
  })
})

test('sets merge, plain lists and atomic maps are taken whole', () => {
  const first = apply(undefined, x({ finalizers: ['a'], args: ['1'], selector: { a: '1' } }))
  const second = apply(first, x({ finalizers: ['b'] }), 'b')
  assert.deepEqual((second.spec as { finalizers: string[] }).finalizers, ['a', 'b'])
  const forced = apply(second, x({ args: ['2'], selector: { b: '2' } }), 'b', true)
  assert.deepEqual(forced.spec, { finalizers: ['a'], args: ['2'], selector: { b: '2' } })
})

test('an update takes the fields that it changes from appliers', () => {
  const applied = apply(undefined, x({ replicas: 1, args: ['a'] }))
  const updated = { ...applied, metadata: { ...applied.metadata }, spec: { replicas: 3, args: ['a'] } }
  trackUpdate(kind, applied, updated, { manager: 'editor', apiVersion: 'x.io/v1', now })
  assert.throws(() => apply(updated, x({ replicas: 1, args: ['a'] })), { code: 409, message: /conflict with "editor"/ })
  assert.deepEqual(apply(updated, x({ args: ['a'] })).spec, { replicas: 3, args: ['a'] })
})

test('an object from before records were kept conflicts with its first applier', () => {
  assert.throws(() => apply(x({ replicas: 1 }), x({ replicas: 2 })), { code: 409, message: /before-first-apply/ })
  assert.deepEqual(apply(x({ replicas: 1 }), x({ replicas: 1 })).spec, { replicas: 1 })
})

test('applying the same again changes nothing, not even times', () => {
  const first = apply(undefined, x({ replicas: 1 }))
  const later = new Date('2026-02-02T00:00:00Z')
  const again = applyConfiguration(kind, first, x({ replicas: 1 }), {
    manager: 'a',
    apiVersion: 'x.io/v1',
    now: later,
    force: false,
  })
  assert.deepEqual(again, first)
})
