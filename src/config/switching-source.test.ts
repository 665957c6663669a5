import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type KubeObject, resources } from '../api/index.ts'
import { createObjectStore } from './object-store.ts'
import { createSwitchingSource } from './switching-source.ts'

const entry = (name: string, address: string): KubeObject => ({
  apiVersion: 'networking.istio.io/v1',
  kind: 'WorkloadEntry',
  metadata: { namespace: 'ns', name },
  spec: { address },
})

function storeOf(...objects: readonly KubeObject[]) {
  const store = createObjectStore()
  store.replaceAll(objects)
  return store
}

function record(source: ReturnType<typeof createSwitchingSource>) {
  const told: string[][] = []
  const informer = source.informer(resources.workloadEntries)
  informer.subscribe((changes) => told.push(changes.map(({ kind, object }) => `${kind} ${object.metadata.name}`)))
  return { told, informer }
}

describe('a source that is replaced', () => {
  test('counts until the next one has been read; then only what differs is told', async () => {
    const [first, second] = [storeOf(entry('a', '1'), entry('b', '1'), entry('c', '1')), storeOf()]
    first.markSynced()
    const source = createSwitchingSource(first)
    const { told, informer } = record(source)
    await informer.synced
    const switched = source.switchTo(second)
    second.replaceAll([entry('a', '1'), entry('b', '2'), entry('d', '1')])
    first.replaceAll([entry('a', '1'), entry('b', '1'), entry('c', '2')])
    assert.deepEqual(told, [['added a', 'added b', 'added c'], ['updated c']])
    second.markSynced()
    assert.equal(await switched, true)
    assert.deepEqual(told.slice(2), [['deleted c', 'updated b', 'added d']])
    first.replaceAll([entry('x', '1')])
    second.replaceAll([entry('a', '1')])
    assert.deepEqual(told.slice(3), [['deleted b', 'deleted d']])
    assert.deepEqual(
      informer.list().map(({ metadata }) => metadata.name),
      ['a'],
    )
  })

  test('a later replacement wins over one that has not been read', async () => {
    const [first, slow, third] = [storeOf(), storeOf(entry('slow', '1')), storeOf(entry('third', '1'))]
    first.markSynced()
    third.markSynced()
    const source = createSwitchingSource(first)
    const { told } = record(source)
    const switched = source.switchTo(slow)
    assert.equal(await source.switchTo(third), true)
    slow.markSynced()
    assert.equal(await switched, false)
    assert.deepEqual(told, [['added third']])
  })

  test('who asks after the change gets the new one', async () => {
    const [first, second] = [storeOf(entry('a', '1')), storeOf(entry('b', '1'))]
    for (const one of [first, second]) one.markSynced()
    const source = createSwitchingSource(first)
    await source.switchTo(second)
    assert.deepEqual(record(source).told, [['added b']])
  })
})
