import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApi, type TestApi } from '../../test/support/embedded-api.ts'
import { waitUntil } from './cluster-wait.ts'

let api: TestApi

before(async () => {
  api = await startTestApi()
})
after(() => api?.[Symbol.asyncDispose]())

const never = () => ['what never comes']
const options = { timeoutMs: 60_000, note: () => undefined }

test('a wait that begins after the signal ends at once', { timeout: 20_000 }, async () => {
  await assert.rejects(waitUntil(api.client, never, { ...options, signal: AbortSignal.abort() }), {
    name: 'AbortError',
  })
})

test('a wait ends when the signal comes while it reads the first lists', { timeout: 20_000 }, async () => {
  const stop = new AbortController()
  const waited = waitUntil(api.client, never, { ...options, signal: stop.signal })
  stop.abort()
  await assert.rejects(waited, { name: 'AbortError' })
})

test('a wait ends when what it waits for never comes', { timeout: 20_000 }, async () => {
  const waited = waitUntil(api.client, never, { ...options, timeoutMs: 50, signal: new AbortController().signal })
  await assert.rejects(waited, /not ready after 0.05 s: what never comes/)
})
