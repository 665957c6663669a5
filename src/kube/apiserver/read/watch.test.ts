import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { configMap, startTestApi, type TestApi, type WatchEvent } from '../testing.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
})
after(async () => {
  await api[Symbol.asyncDispose]()
})

async function take(events: AsyncIterableIterator<WatchEvent>, wanted: number): Promise<WatchEvent[]> {
  const taken: WatchEvent[] = []
  while (taken.length < wanted) {
    const { value, done } = await events.next()
    if (done === true) break
    taken.push(value)
  }
  return taken
}

const short = (events: readonly WatchEvent[]) =>
  events.map(({ type, object }) => `${type} ${object.metadata.name ?? ''}`)

test('a watch tells all changes after its revision, in order', async () => {
  const ns = await api.namespace()
  const { metadata } = await api.ok('GET', `${ns}/configmaps`)
  await api.ok('POST', `${ns}/configmaps`, configMap('a'))
  await api.ok('PATCH', `${ns}/configmaps/a`, { data: { x: '1' } }, 'application/merge-patch+json')
  await api.ok('DELETE', `${ns}/configmaps/a`)
  using events = api.watch(`${ns}/configmaps?watch=1&resourceVersion=${metadata.resourceVersion}`)
  const taken = await take(events, 3)
  assert.deepEqual(short(taken), ['ADDED a', 'MODIFIED a', 'DELETED a'])
  const revisions = taken.map((event) => Number(event.object.metadata.resourceVersion))
  assert.deepEqual(
    revisions,
    revisions.toSorted((a, b) => a - b),
  )
  assert.equal(new Set(revisions).size, 3)
})

test('an object that comes into or leaves a selection is added or deleted', async () => {
  const ns = await api.namespace()
  const { metadata } = await api.ok('GET', `${ns}/configmaps`)
  const label = (app: string) =>
    api.ok('PATCH', `${ns}/configmaps/a`, { metadata: { labels: { app } } }, 'application/merge-patch+json')
  await api.ok('POST', `${ns}/configmaps`, configMap('a'))
  await label('x')
  await label('y')
  await api.ok('POST', `${ns}/configmaps`, configMap('end', { labels: { app: 'x' } }))
  using events = api.watch(`${ns}/configmaps?watch=1&labelSelector=app%3Dx&resourceVersion=${metadata.resourceVersion}`)
  const taken = await take(events, 3)
  assert.deepEqual(short(taken), ['ADDED a', 'DELETED a', 'ADDED end'])
  assert.equal(taken[1]?.object.metadata.labels.app, 'x')
})

test('without a revision the present comes first', async () => {
  const ns = await api.namespace()
  await api.ok('POST', `${ns}/configmaps`, configMap('a'))
  using events = api.watch(`${ns}/configmaps?watch=1`)
  assert.deepEqual(short(await take(events, 1)), ['ADDED a'])
  await api.ok('POST', `${ns}/configmaps`, configMap('b'))
  assert.deepEqual(short(await take(events, 1)), ['ADDED b'])
})

test('a streamed list ends with a marked bookmark', async () => {
  const ns = await api.namespace()
  await api.ok('POST', `${ns}/configmaps`, configMap('a'))
  const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
  using events = api.watch(`${ns}/configmaps?${query}`)
  const taken = await take(events, 2)
  assert.deepEqual(short(taken), ['ADDED a', 'BOOKMARK '])
  assert.equal(taken[1]?.object.metadata.annotations['k8s.io/initial-events-end'], 'true')
})

test('a watch ends at its time with a bookmark of the whole store', async () => {
  const ns = await api.namespace()
  const list = await api.ok('GET', `${ns}/secrets`)
  await api.ok('POST', `${ns}/configmaps`, configMap('a'))
  using events = api.watch(
    `${ns}/secrets?watch=1&resourceVersion=${list.metadata.resourceVersion}&timeoutSeconds=1&allowWatchBookmarks=true`,
  )
  const taken = await take(events, 2)
  assert.deepEqual(short(taken), ['BOOKMARK '])
  assert.ok(Number(taken[0]?.object.metadata.resourceVersion) > Number(list.metadata.resourceVersion))
})

test('a revision that is forgotten, or from another life, ends the watch with 410', async () => {
  using future = api.watch('/api/v1/configmaps?watch=1&resourceVersion=999999999')
  const [event] = await take(future, 1)
  assert.deepEqual([event?.type, event?.object.code, event?.object.reason], ['ERROR', 410, 'Expired'])
})

test('a watch of one object by its name sees only that', async () => {
  const ns = await api.namespace()
  await api.ok('POST', `${ns}/configmaps`, configMap('a'))
  await api.ok('POST', `${ns}/configmaps`, configMap('b'))
  using events = api.watch(`${ns}/configmaps?watch=1&fieldSelector=metadata.name%3Db`)
  assert.deepEqual(short(await take(events, 1)), ['ADDED b'])
})

test('a client that does not read holds up nobody, and reads all of it later', async () => {
  const ns = await api.namespace()
  using events = api.watch(`${ns}/configmaps?watch=1`)
  const total = 300
  const data = { x: 'y'.repeat(20_000) }
  for (let index = 0; index < total; index += 1) {
    await api.ok('POST', `${ns}/configmaps`, { metadata: { name: `c${index}` }, data })
  }
  const taken = await take(events, total)
  assert.equal(new Set(taken.map((event) => event.object.metadata.name)).size, total)
})
