import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { discovery } from '../../proto/index.ts'
import { createMemorySource } from '../testing.ts'
import { stepDelta } from './delta.ts'
import type { ServedType, Watch } from './watch.ts'

type Fields = MessageInitShape<typeof discovery.DeltaDiscoveryRequestSchema>

function setUp(onDemand: boolean) {
  const source = createMemorySource('a.B', { onDemand })
  source.change({
    set: [
      { name: 'one', text: '1', aliases: ['/10.0.0.1'] },
      { name: 'two', text: '2', node: 'here' },
    ],
  })
  const type: ServedType = { source, isWildcard: true }
  let watch: Watch | undefined
  const step = (fields: Fields): string => {
    const next = stepDelta(watch, type, create(discovery.DeltaDiscoveryRequestSchema, fields), 'here')
    if (next.kind === 'silent') return next.reason
    watch = next.watch
    const { resources, removed } = next.content()
    watch.nonceSent = `n${Number(watch.nonceSent.slice(1)) + 1}`
    return [...resources.map(({ name }) => name), ...removed.map((name) => `-${name}`)].join(' ')
  }
  return { step, source, watch: () => watch, version: (name: string) => source.get(name)?.version ?? '' }
}

describe('an incremental request', () => {
  test('without names asks for everything', () => {
    assert.equal(setUp(false).step({}), 'one two')
  })

  test('leaves out what the client holds in the present version and names what is gone', () => {
    const { step, version } = setUp(false)
    const initialResourceVersions = { one: version('one'), two: 'stale', three: 'any' }
    assert.equal(step({ initialResourceVersions }), 'two -three')
  })

  test('that acknowledges is not answered, and an old nonce counts for nothing', () => {
    const { step, watch } = setUp(false)
    step({})
    assert.equal(step({ responseNonce: 'n1' }), 'ack')
    assert.equal(watch()?.nonceAcked, 'n1')
    assert.equal(step({ responseNonce: 'n0' }), 'stale')
  })

  test('that rejects is recorded and not answered', () => {
    const { step, watch } = setUp(false)
    step({})
    assert.equal(step({ responseNonce: 'n1', errorDetail: { message: 'bad' } }), 'nack')
    assert.equal(watch()?.lastError, 'bad')
    assert.equal(watch()?.nonceAcked, '')
  })

  test('for names is answered with those names only', () => {
    const { step } = setUp(false)
    assert.equal(step({ resourceNamesSubscribe: ['one'] }), 'one')
    assert.equal(step({ resourceNamesSubscribe: ['two', 'nine'], responseNonce: 'n1' }), 'two -nine')
    assert.equal(step({ resourceNamesUnsubscribe: ['one'] }), 'unsubscribed')
    assert.equal(step({ resourceNamesUnsubscribe: ['never'] }), 'ack')
  })

  test('for nothing but its node is answered with that, and by alias later', () => {
    const { step, watch } = setUp(true)
    assert.equal(step({ resourceNamesSubscribe: ['*'], resourceNamesUnsubscribe: ['*'] }), 'two')
    assert.equal(step({ resourceNamesSubscribe: ['/10.0.0.1'] }), 'one')
    assert.equal(step({ resourceNamesSubscribe: ['/10.0.0.9'] }), '-/10.0.0.9')
    assert.deepEqual([...(watch()?.names ?? [])].sort(), ['/10.0.0.1', '/10.0.0.9', 'one', 'two'])
  })

  test('keeps no names for a client that watches everything', () => {
    const { step, watch } = setUp(true)
    step({ initialResourceVersions: { one: '', two: '' } })
    assert.equal(watch()?.names.size, 0)
  })
})
