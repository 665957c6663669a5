import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { configMap, type Json, startTestApi, type TestApi } from '../testing.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
})
after(async () => {
  await api[Symbol.asyncDispose]()
})

test('pages are of one moment, whatever is written in between', async () => {
  const ns = await api.namespace()
  for (const name of ['a', 'b', 'c', 'd']) await api.ok('POST', `${ns}/configmaps`, configMap(name))
  const first = await api.ok('GET', `${ns}/configmaps?limit=2`)
  assert.equal(first.metadata.remainingItemCount, 2)
  await api.ok('DELETE', `${ns}/configmaps/c`)
  await api.ok('POST', `${ns}/configmaps`, configMap('cc'))
  const token = encodeURIComponent(first.metadata.continue)
  const second = await api.ok('GET', `${ns}/configmaps?limit=2&continue=${token}`)
  assert.deepEqual(
    second.items.map((item: Json) => item.metadata.name),
    ['c', 'd'],
  )
  assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion)
  assert.equal(second.metadata.continue, undefined)
  assert.deepEqual(await api.names(`${ns}/configmaps`), ['a', 'b', 'cc', 'd'])
})

test('selectors choose by labels and fields', async () => {
  const ns = await api.namespace()
  await api.ok('POST', `${ns}/configmaps`, configMap('a', { labels: { app: 'x' } }))
  await api.ok('POST', `${ns}/configmaps`, configMap('b', { labels: { app: 'y' } }))
  assert.deepEqual(await api.names(`${ns}/configmaps?labelSelector=app%3Dx`), ['a'])
  assert.deepEqual(await api.names(`${ns}/configmaps?labelSelector=app+in+(x,y)`), ['a', 'b'])
  assert.deepEqual(await api.names(`${ns}/configmaps?fieldSelector=metadata.name%3Db`), ['b'])
  await api.ok('DELETE', `${ns}/configmaps?labelSelector=app%3Dx`)
  assert.deepEqual(await api.names(`${ns}/configmaps`), ['b'])
})

test('a revision that is not there yet is not waited for', async () => {
  const answer = await api.send('GET', '/api/v1/pods?resourceVersion=999999999')
  assert.deepEqual([answer.code, answer.body.details.causes[0].reason], [504, 'ResourceVersionTooLarge'])
})

test('tables and metadata are answered when they are asked for', async () => {
  const ns = await api.namespace()
  await api.ok('POST', `${ns}/configmaps`, configMap('a'))
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
  const table = (await api.send('GET', `${ns}/configmaps`, { headers: { accept } })).body
  assert.equal(table.kind, 'Table')
  assert.deepEqual(table.rows[0].cells.slice(0, 2), ['a', 1])
  const partial = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
  const list = (await api.send('GET', `${ns}/configmaps`, { headers: { accept: partial } })).body
  assert.deepEqual(
    [list.kind, list.items[0].kind, list.items[0].data],
    ['PartialObjectMetadataList', 'PartialObjectMetadata', undefined],
  )
  assert.equal((await api.send('GET', `${ns}/configmaps`, { headers: { accept: 'text/html' } })).code, 406)
})

test('an event is the same in both of its groups', async () => {
  const ns = await api.namespace()
  const regarding = { kind: 'Pod', namespace: ns.split('/').at(-1), name: 'p' }
  await api.ok('POST', `${ns}/events`, {
    metadata: { name: 'e' },
    involvedObject: regarding,
    reason: 'R',
    message: 'm',
    type: 'Normal',
  })
  const other = await api.ok('GET', `${ns.replace('/api/v1', '/apis/events.k8s.io/v1')}/events/e`)
  assert.deepEqual([other.apiVersion, other.regarding?.name, other.note], ['events.k8s.io/v1', 'p', 'm'])
})
