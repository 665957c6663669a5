import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Resource } from '../api/index.ts'
import { condition, informerLab, record, widgets } from './test-informer.ts'

describe('an informer of a kind that the server does not have', { timeout: 30_000 }, () => {
  const lab = informerLab()

  test('counts a kind that the server does not know as empty, and fills it when the kind appears', async () => {
    const { api } = lab
    api.failWith = 404
    await using informer = lab.open()
    await informer.synced
    assert.deepEqual(informer.list(), [])
    const seen = record(informer)
    api.put('a', 1)
    api.failWith = undefined
    await seen.until(() => informer.list().length === 1)
  })

  test('reads a kind that the server has in another version only, and tells it as its own', async () => {
    const { api } = lab
    api.put('a', 1)
    const newer: Resource = { ...widgets, version: 'v3', otherVersions: ['v2', 'v1'] }
    const warnings: string[] = []
    const told = {
      debug: () => {},
      warn: (message: string, fields = {}) => void warnings.push(`${message} ${JSON.stringify(fields)}`),
    }
    await using informer = lab.open({ resource: newer, log: told })
    await informer.synced
    api.put('b', 2)
    await condition(() => informer.list().length === 2)
    assert.deepEqual(
      informer.list().map(({ apiVersion }) => apiVersion),
      ['example.com/v3', 'example.com/v3'],
    )
    assert.equal(warnings.length, 1)
    assert.match(warnings[0] ?? '', /another version.*"version":"v1","wanted":"v3"/)
  })

  test('keeps its objects when the kind is unknown for a moment only', async () => {
    const { api } = lab
    api.put('a', 1)
    await using informer = lab.open()
    const seen = record(informer)
    await informer.synced
    await lab.whenWatched()
    api.failWith = 404
    const before = api.requests.length
    api.cut()
    await condition(() => api.watchers === 0)
    api.failWith = undefined
    await condition(() => api.requests.length > before)
    await lab.whenWatched()
    assert.deepEqual(seen.all(), ['added a=1'])
  })
})
