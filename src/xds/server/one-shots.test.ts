import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import { discovery } from '../../proto/index.ts'
import { createMemorySource } from '../testing.ts'
import type { OneShotType } from '../types.ts'
import { type Answer, createOneShots } from './one-shots.ts'
import type { Request } from './request.ts'
import { connectClient } from './testing.ts'

const client = { nodeId: 'tool', metadata: {}, identities: [] }

function delta(fields: { readonly resourceNamesUnsubscribe?: string[]; readonly responseNonce?: string }): Request {
  return { kind: 'delta', message: create(discovery.DeltaDiscoveryRequestSchema, fields), bytes: 0 }
}

/** A type that tells of these names. */
function typeOf(names: string[], isOfClients: boolean): OneShotType {
  return {
    typeUrl: 'test/names',
    isOfClients,
    answer: () => names.map((name) => ({ name, aliases: [], version: '', body: new Uint8Array() })),
  }
}

function told(answer: Answer | undefined): { readonly names: readonly string[]; readonly removed: readonly string[] } {
  assert.ok(answer)
  const { resources, removed } = answer.content()
  return { names: resources.map(({ name }) => name), removed }
}

test('who has asked for the clients is told again when they come and go, once for all that came and went', () => {
  const names = ['a', 'b']
  const oneShots = createOneShots(client)
  assert.deepEqual(told(oneShots.answer(typeOf(names, true), delta({}))), { names: ['a', 'b'], removed: [] })
  assert.equal(oneShots.next(), undefined)
  names.splice(0, 1, 'c')
  oneShots.recall()
  names.push('d')
  oneShots.recall()
  assert.deepEqual(told(oneShots.next()), { names: ['c', 'b', 'd'], removed: ['a'] })
  assert.equal(oneShots.next(), undefined)
})

test('nobody else is, nor who has unsubscribed', () => {
  const oneShots = createOneShots(client)
  oneShots.answer(typeOf(['page'], false), delta({}))
  const clients = typeOf(['a'], true)
  oneShots.answer(clients, delta({}))
  assert.equal(oneShots.answer(clients, delta({ responseNonce: 'n' })), undefined)
  assert.equal(oneShots.answer(clients, delta({ resourceNamesUnsubscribe: ['*'] })), undefined)
  oneShots.recall()
  assert.equal(oneShots.next(), undefined)
})

test('a client whose first requests are still awaited is not answered sooner because others come', () => {
  const { connection, messages } = connectClient([createMemorySource('test/type')])
  connection.recall()
  assert.deepEqual(messages, [])
  connection.close()
})
