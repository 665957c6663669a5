import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { condition, informerLab } from './test-informer.ts'
import { watchOnce } from './watch.ts'

describe('an informer of a server that refuses it, or does not answer,', { timeout: 30_000 }, () => {
  const lab = informerLab()

  test('gives up a version that the server fails on again and again, and lists', async () => {
    const { api } = lab
    api.put('a', 1)
    await using informer = lab.open()
    await informer.synced
    await lab.whenWatched()
    api.refuseWatches = { code: 500, message: 'etcd is not well' }
    api.cut()
    await condition(() => api.requests.filter((request) => request === 'list').length >= 2)
    const between = api.requests.slice(1, api.requests.lastIndexOf('list'))
    // The one that was cut, the tries that count, and one more where the cut was no answer of the server.
    assert.ok(between.length >= 5 && between.length <= 7, between.join())
    api.refuseWatches = undefined
    await lab.whenWatched()
  })

  test('goes on where it was when a server refuses it for a moment after its start', async () => {
    const { api } = lab
    api.put('a', 1)
    await using informer = lab.open()
    await informer.synced
    api.refuseWatches = { code: 403, message: 'widgets may not be watched' }
    api.cut()
    const watches = () => api.requests.filter((request) => request.startsWith('watch')).length
    const before = watches()
    await condition(() => watches() >= before + 2)
    api.refuseWatches = undefined
    api.put('b', 2)
    await condition(() => informer.list().length === 2)
    assert.equal(api.requests.filter((request) => request === 'list').length, 1)
  })

  test('is told less and less when it may list but not watch', async () => {
    const { api } = lab
    api.put('a', 1)
    api.refuseWatches = { code: 403, message: 'widgets may not be watched' }
    const warnings: string[] = []
    const told = {
      debug: () => {},
      warn: (_message: string, fields = {}) => void warnings.push(JSON.stringify(fields)),
    }
    await using informer = lab.open({ log: told, times: { mostRelistMs: 10_000 } })
    await informer.synced
    const lists = () => api.requests.filter((request) => request === 'list').length
    await condition(() => lists() >= 4)
    const startedAt = Date.now()
    await condition(() => lists() >= 6)
    assert.ok(Date.now() - startedAt >= 5 * (8 + 16) * 0.75, 'waits double')
    assert.equal(warnings.length, 1)
    assert.match(warnings[0] ?? '', /widgets may not be watched/)
  })

  for (const way of ['status', 'header'] as const) {
    test(`leaves a server alone as long as it asks for, by the ${way} of its answer`, async () => {
      const { api } = lab
      api.put('a', 1)
      api.failWith = 429
      api.retryAfterSeconds = 1
      api.retryAfterIn = way
      await using informer = lab.open()
      const startedAt = Date.now()
      await condition(() => api.requests.length + api.refused >= 1)
      api.failWith = undefined
      await informer.synced
      assert.ok(Date.now() - startedAt >= 900)
    })
  }

  test('a watch that is never answered does not hold it up', async () => {
    const { api } = lab
    api.put('a', 1)
    api.silentOn = 'watch'
    const path = '/apis/example.com/v1/widgets?watch=true&resourceVersion=1'
    const watching = watchOnce(
      lab.transport,
      () => path,
      () => {},
      AbortSignal.timeout(10_000),
      50,
    )
    await assert.rejects(watching, /no answer within 50 ms/)
  })
})
