import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApi } from '../testing.ts'
import { expireEvents } from './event-expiry.ts'

test('events go an hour after they were last seen', async () => {
  await using api = await startTestApi()
  const event = (name: string, lastTimestamp: string) => ({
    metadata: { name },
    involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' },
    lastTimestamp,
  })
  await api.ok('POST', '/api/v1/namespaces/default/events', event('old', new Date().toISOString()))
  const now = new Date(Date.now() + 2 * 3_600_000)
  await api.ok('POST', '/api/v1/namespaces/default/events', event('lately', now.toISOString()))
  await expireEvents(api.server.api, now)
  const list = await api.ok('GET', '/api/v1/namespaces/default/events')
  assert.deepEqual(
    list.items.map((item: { metadata: { name: string } }) => item.metadata.name),
    ['lately'],
  )
})
