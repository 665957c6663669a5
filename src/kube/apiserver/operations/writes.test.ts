import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { configMap, startTestApi, type TestApi } from '../testing.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
})
after(async () => {
  await api[Symbol.asyncDispose]()
})

test('a created object has identity, version and record of fields', async () => {
  const ns = await api.namespace()
  const created = await api.ok('POST', `${ns}/configmaps?fieldManager=me`, configMap('a'))
  const { uid, resourceVersion, creationTimestamp, managedFields } = created.metadata
  assert.match(uid, /^[0-9a-f-]{36}$/)
  assert.match(resourceVersion, /^\d+$/)
  assert.match(creationTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
  assert.deepEqual(
    [managedFields[0].manager, managedFields[0].operation, managedFields[0].fieldsV1],
    ['me', 'Update', { 'f:data': { 'f:key': {} } }],
  )
  assert.deepEqual(await api.ok('GET', `${ns}/configmaps/a`), created)
})

test('generated names differ', async () => {
  const ns = await api.namespace()
  const first = await api.ok('POST', `${ns}/configmaps`, { metadata: { generateName: 'job-' } })
  const second = await api.ok('POST', `${ns}/configmaps`, { metadata: { generateName: 'job-' } })
  assert.match(first.metadata.name, /^job-[a-z0-9]{5}$/)
  assert.notEqual(first.metadata.name, second.metadata.name)
})

test('an update needs the current version, or none', async () => {
  const ns = await api.namespace()
  const first = await api.ok('POST', `${ns}/configmaps`, configMap('a'))
  const second = await api.ok('PUT', `${ns}/configmaps/a`, { ...first, data: { key: '2' } })
  const stale = await api.send('PUT', `${ns}/configmaps/a`, { body: { ...first, data: { key: '3' } } })
  assert.deepEqual([stale.code, stale.body.reason], [409, 'Conflict'])
  const { resourceVersion: _, ...metadata } = second.metadata
  const third = await api.ok('PUT', `${ns}/configmaps/a`, { ...second, metadata, data: { key: '4' } })
  assert.equal(third.data.key, '4')
})

test('writing what is already there changes nothing', async () => {
  const ns = await api.namespace()
  const first = await api.ok('POST', `${ns}/configmaps`, configMap('a'))
  const second = await api.ok('PUT', `${ns}/configmaps/a`, first)
  assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion)
})

test('a dry run answers and stores nothing', async () => {
  const ns = await api.namespace()
  await api.ok('POST', `${ns}/configmaps?dryRun=All`, configMap('a'))
  assert.ok(await api.isGone(`${ns}/configmaps/a`))
  await api.ok('POST', `${ns}/configmaps`, configMap('a'))
  const patched = await api.ok(
    'PATCH',
    `${ns}/configmaps/a?dryRun=All`,
    { data: { x: 'y' } },
    'application/merge-patch+json',
  )
  assert.equal(patched.data.x, 'y')
  await api.ok('DELETE', `${ns}/configmaps/a?dryRun=All`)
  assert.deepEqual((await api.ok('GET', `${ns}/configmaps/a`)).data, { key: 'value' })
})

test('a status is written through its subresource only, and raises no generation', async () => {
  const ns = (await api.namespace()).replace('/api/v1', '/apis/apps/v1')
  const spec = {
    selector: { matchLabels: { a: 'b' } },
    template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'host' }] } },
  }
  const created = await api.ok('POST', `${ns}/deployments`, {
    metadata: { name: 'd' },
    spec,
    status: { replicas: 7 },
  })
  assert.equal(created.status?.replicas, undefined)
  assert.equal(created.metadata.generation, 1)
  const ignored = await api.ok('PUT', `${ns}/deployments/d`, { ...created, status: { replicas: 7 } })
  assert.equal(ignored.status?.replicas, undefined)
  const status = await api.ok('PUT', `${ns}/deployments/d/status`, {
    ...created,
    spec: { ...created.spec, replicas: 9 },
    status: { replicas: 2 },
  })
  assert.deepEqual([status.status.replicas, status.spec.replicas, status.metadata.generation], [2, 1, 1])
  const scaled = await api.ok(
    'PATCH',
    `${ns}/deployments/d/scale`,
    { spec: { replicas: 5 } },
    'application/merge-patch+json',
  )
  assert.deepEqual([scaled.kind, scaled.spec.replicas, scaled.status], ['Scale', 5, { replicas: 2, selector: 'a=b' }])
  assert.equal((await api.ok('GET', `${ns}/deployments/d`)).metadata.generation, 2)
})

test('every patch type works, and unknown ones are refused', async () => {
  const ns = await api.namespace()
  await api.ok('POST', `${ns}/configmaps`, configMap('a'))
  const path = `${ns}/configmaps/a`
  await api.ok('PATCH', path, [{ op: 'add', path: '/data/json', value: '1' }], 'application/json-patch+json')
  await api.ok('PATCH', path, { data: { merge: '1' } }, 'application/merge-patch+json')
  await api.ok('PATCH', path, { metadata: { labels: { a: 'b' } } }, 'application/strategic-merge-patch+json')
  await api.ok(
    'PATCH',
    `${path}?fieldManager=m`,
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { apply: '1' } },
    'application/apply-patch+yaml',
  )
  const result = await api.ok('GET', path)
  assert.deepEqual(result.data, { key: 'value', json: '1', merge: '1', apply: '1' })
  assert.deepEqual(result.metadata.labels, { a: 'b' })
  assert.equal((await api.send('PATCH', path, { body: {}, type: 'application/json' })).code, 415)
})

test('an apply creates (201), then changes (200), and refuses a field of someone else', async () => {
  const ns = await api.namespace()
  const config = (value: string) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a' },
    data: { key: value },
  })
  const type = 'application/apply-patch+yaml'
  const path = `${ns}/configmaps/a`
  assert.equal((await api.send('PATCH', `${path}?fieldManager=one`, { body: config('1'), type })).code, 201)
  assert.equal((await api.send('PATCH', `${path}?fieldManager=one`, { body: config('2'), type })).code, 200)
  const conflict = await api.send('PATCH', `${path}?fieldManager=two`, { body: config('3'), type })
  assert.equal(conflict.code, 409)
  assert.deepEqual(conflict.body.details.causes, [
    { reason: 'FieldManagerConflict', message: 'conflict with "one" using v1', field: '.data.key' },
  ])
  assert.equal((await api.ok('PATCH', `${path}?fieldManager=two&force=true`, config('3'), type)).data.key, '3')
  assert.equal((await api.send('PATCH', path, { body: config('3'), type })).code, 422)
})

test('concurrent patches all take effect', async () => {
  const ns = await api.namespace()
  await api.ok('POST', `${ns}/configmaps`, { metadata: { name: 'a' } })
  const keys = Array.from({ length: 20 }, (_, index) => `k${index}`)
  await Promise.all(
    keys.map((key) => api.ok('PATCH', `${ns}/configmaps/a`, { data: { [key]: '1' } }, 'application/merge-patch+json')),
  )
  assert.equal(Object.keys((await api.ok('GET', `${ns}/configmaps/a`)).data).length, keys.length)
})
