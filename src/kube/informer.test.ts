import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { condition, informerLab, record } from './test-informer.ts'

describe('an informer', { timeout: 30_000 }, () => {
  const lab = informerLab()

  test('delivers the list as one batch, then changes; a late listener gets what is known', async () => {
    const { api } = lab
    api.put('a', 1)
    api.put('b', 1)
    await using informer = lab.open()
    const seen = record(informer)
    await informer.synced
    assert.deepEqual(seen.batches, [['added a=1', 'added b=1']])
    assert.equal(informer.get({ name: 'a' })?.kind, 'Widget')
    api.put('a', 2)
    api.remove('b')
    await seen.until(() => informer.get({ name: 'b' }) === undefined)
    assert.deepEqual(seen.all().slice(2), ['updated a=2', 'deleted b=1'])
    assert.deepEqual(record(informer).batches, [['added a=2']])
  })

  test('reads lists of many pages', async () => {
    const { api } = lab
    for (let i = 0; i < 1_234; i += 1) api.put(`w${i}`, i)
    await using informer = lab.open()
    await informer.synced
    assert.equal(informer.list().length, 1_234)
    assert.equal(api.requests.filter((request) => request === 'list').length, 3)
  })

  test('reads ten thousand objects in pages and lets others work meanwhile', async () => {
    const { api } = lab
    for (let i = 0; i < 10_000; i += 1) api.put(`w${i}`, i)
    let turns = 0
    const turning = setInterval(() => (turns += 1), 1)
    await using informer = lab.open()
    await informer.synced
    clearInterval(turning)
    assert.equal(informer.list().length, 10_000)
    assert.equal(api.requests.filter((request) => request === 'list').length, 20)
    assert.ok(turns >= 20, `${turns} turns`)
  })

  test('a listener that throws does not stop the others', async () => {
    const { api } = lab
    await using informer = lab.open()
    informer.subscribe(() => {
      throw new Error('broken listener')
    })
    const seen = record(informer)
    await informer.synced
    api.put('a', 1)
    await seen.until(() => informer.list().length === 1)
    assert.deepEqual(seen.all(), ['added a=1'])
  })

  test('waits for a server that is not there yet', async () => {
    const { api } = lab
    await api.stop()
    await using informer = lab.open()
    api.put('a', 1)
    await api.start()
    await informer.synced
    assert.equal(informer.list().length, 1)
  })

  for (const silent of ['list', 'half'] as const) {
    test(`closing ends a list that the server does not ${silent === 'list' ? 'answer' : 'finish'}`, async () => {
      const { api } = lab
      api.silentOn = silent
      const informer = lab.open()
      await condition(() => api.requests.includes('list'))
      await informer[Symbol.asyncDispose]()
      await assert.rejects(informer.synced, /closed/)
    })
  }

  test('ends at once when it is closed, synced or not', async () => {
    const { api } = lab
    await api.stop()
    const informer = lab.open()
    await informer[Symbol.asyncDispose]()
    await assert.rejects(informer.synced, /closed/)
    await api.start()
  })
})
