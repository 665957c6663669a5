import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type KubeObject, resources } from '../api/index.ts'
import { aggregateSources } from './aggregate.ts'
import { createMemorySource } from './memory-source.ts'

const { serviceEntries } = resources
const entry = (name: string, text: string): KubeObject => ({
  apiVersion: 'networking.istio.io/v1',
  kind: 'ServiceEntry',
  metadata: { name, namespace: 'ns' },
  spec: { text },
})

describe('a source in memory', () => {
  test('refuses what does not fit what it holds', () => {
    const source = createMemorySource([serviceEntries])
    const held = source.create(entry('a', '1'))
    assert.throws(() => source.create(entry('a', '2')), { code: 'ALREADY_EXISTS', message: 'item already exists' })
    assert.throws(() => source.update(entry('b', '2')), { code: 'NOT_FOUND' })
    source.update({ ...held, spec: { text: '2' } })
    assert.throws(() => source.update({ ...held, spec: { text: '3' } }), { code: 'CONFLICT' })
    assert.throws(() => source.create({ ...entry('a', '1'), kind: 'Pod', apiVersion: 'v1' }), { code: 'UNKNOWN_TYPE' })
    source.delete(serviceEntries, { namespace: 'ns', name: 'a' })
    assert.throws(() => source.delete(serviceEntries, { namespace: 'ns', name: 'a' }), { code: 'NOT_FOUND' })
  })
})

describe('several sources', () => {
  test('are one, in which the first that has an object counts', async () => {
    const [first, second] = [createMemorySource([serviceEntries]), createMemorySource([serviceEntries])]
    second.create(entry('a', 'second'))
    await using informer = aggregateSources([first, second]).informer<KubeObject<{ text: string }>>(serviceEntries)
    const told: string[] = []
    informer.subscribe((changes) => {
      for (const { kind, object } of changes) told.push(`${kind} ${object.metadata.name} ${object.spec?.text}`)
    })
    await informer.synced
    first.create(entry('a', 'first'))
    second.update(entry('a', 'hidden'))
    second.create(entry('b', 'second'))
    first.delete(serviceEntries, { namespace: 'ns', name: 'a' })
    second.delete(serviceEntries, { namespace: 'ns', name: 'a' })
    assert.deepEqual(told, [
      'added a second',
      'updated a first',
      'added b second',
      'updated a hidden',
      'deleted a hidden',
    ])
  })
})
