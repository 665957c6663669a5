import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Json, startTestApi, type TestApi, type WatchEvent } from './testing.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
})
after(async () => {
  await api[Symbol.asyncDispose]()
})

let count = 0
/** A namespace of the test's own. */
async function namespace(): Promise<string> {
  count += 1
  const name = `test-${count}`
  await api.ok('POST', '/api/v1/namespaces', { metadata: { name } })
  await api.ok('POST', `/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: 'default' } })
  return `/api/v1/namespaces/${name}`
}

function configMap(name: string, more: object = {}): object {
  return { metadata: { name, ...more }, data: { key: 'value' } }
}

async function names(path: string): Promise<string[]> {
  const list = await api.ok('GET', path)
  return list.items.map((item: Json) => item.metadata.name)
}

/** Asks again after each change of the collection until the condition holds. */
async function eventually(collection: string, holds: () => Promise<boolean>): Promise<void> {
  using events = api.watch(`${collection}?watch=1&timeoutSeconds=10`)
  if (await holds()) return
  for await (const _ of events) if (await holds()) return
  assert.fail(`never came true for ${collection}`)
}

async function isGone(path: string): Promise<boolean> {
  return (await api.send('GET', path)).code === 404
}

describe('objects', () => {
  test('a created object has identity, version and record of fields', async () => {
    const ns = await namespace()
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
    const ns = await namespace()
    const first = await api.ok('POST', `${ns}/configmaps`, { metadata: { generateName: 'job-' } })
    const second = await api.ok('POST', `${ns}/configmaps`, { metadata: { generateName: 'job-' } })
    assert.match(first.metadata.name, /^job-[a-z0-9]{5}$/)
    assert.notEqual(first.metadata.name, second.metadata.name)
  })

  test('an update needs the current version, or none', async () => {
    const ns = await namespace()
    const first = await api.ok('POST', `${ns}/configmaps`, configMap('a'))
    const second = await api.ok('PUT', `${ns}/configmaps/a`, { ...first, data: { key: '2' } })
    const stale = await api.send('PUT', `${ns}/configmaps/a`, { body: { ...first, data: { key: '3' } } })
    assert.deepEqual([stale.code, stale.body.reason], [409, 'Conflict'])
    const { resourceVersion: _, ...metadata } = second.metadata
    const third = await api.ok('PUT', `${ns}/configmaps/a`, { ...second, metadata, data: { key: '4' } })
    assert.equal(third.data.key, '4')
  })

  test('writing what is already there changes nothing', async () => {
    const ns = await namespace()
    const first = await api.ok('POST', `${ns}/configmaps`, configMap('a'))
    const second = await api.ok('PUT', `${ns}/configmaps/a`, first)
    assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion)
  })

  test('a dry run answers and stores nothing', async () => {
    const ns = await namespace()
    await api.ok('POST', `${ns}/configmaps?dryRun=All`, configMap('a'))
    assert.ok(await isGone(`${ns}/configmaps/a`))
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
    const ns = (await namespace()).replace('/api/v1', '/apis/apps/v1')
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
    const ns = await namespace()
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
    const ns = await namespace()
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
    const ns = await namespace()
    await api.ok('POST', `${ns}/configmaps`, { metadata: { name: 'a' } })
    const keys = Array.from({ length: 20 }, (_, index) => `k${index}`)
    await Promise.all(
      keys.map((key) =>
        api.ok('PATCH', `${ns}/configmaps/a`, { data: { [key]: '1' } }, 'application/merge-patch+json'),
      ),
    )
    assert.equal(Object.keys((await api.ok('GET', `${ns}/configmaps/a`)).data).length, keys.length)
  })
})

describe('refusals', () => {
  for (const [what, method, path, body, code, reason] of [
    ['an object that is not there', 'GET', '/api/v1/namespaces/default/configmaps/none', undefined, 404, 'NotFound'],
    ['a resource that is not there', 'GET', '/api/v1/things', undefined, 404, 'NotFound'],
    [
      'a second object of a name',
      'POST',
      '/api/v1/namespaces',
      { metadata: { name: 'default' } },
      409,
      'AlreadyExists',
    ],
    [
      'a namespace that is not there',
      'POST',
      '/api/v1/namespaces/none/configmaps',
      { metadata: { name: 'a' } },
      404,
      'NotFound',
    ],
    ['a bad name', 'POST', '/api/v1/namespaces/default/configmaps', { metadata: { name: 'A_b' } }, 422, 'Invalid'],
    ['no name', 'POST', '/api/v1/namespaces/default/configmaps', { metadata: {} }, 422, 'Invalid'],
    [
      'another kind',
      'POST',
      '/api/v1/namespaces/default/configmaps',
      { kind: 'Secret', metadata: { name: 'a' } },
      400,
      'BadRequest',
    ],
    [
      'another version',
      'POST',
      '/api/v1/namespaces/default/configmaps',
      { apiVersion: 'v2', metadata: { name: 'a' } },
      400,
      'BadRequest',
    ],
    [
      'another namespace',
      'POST',
      '/api/v1/namespaces/default/configmaps',
      { metadata: { name: 'a', namespace: 'b' } },
      400,
      'BadRequest',
    ],
    [
      'a version on creation',
      'POST',
      '/api/v1/namespaces/default/configmaps',
      { metadata: { name: 'a', resourceVersion: '1' } },
      400,
      'BadRequest',
    ],
    [
      'a bad label',
      'POST',
      '/api/v1/namespaces/default/configmaps',
      { metadata: { name: 'a', labels: { a: 'b c' } } },
      422,
      'Invalid',
    ],
    ['an unknown field selector', 'GET', '/api/v1/pods?fieldSelector=spec.x%3Dy', undefined, 400, 'BadRequest'],
    ['a bad continue token', 'GET', '/api/v1/pods?continue=x', undefined, 400, 'BadRequest'],
    ['a method that a path has not', 'PUT', '/api/v1/namespaces', {}, 405, 'MethodNotAllowed'],
    [
      'an unknown field, strictly',
      'POST',
      '/api/v1/namespaces/default/configmaps?fieldValidation=Strict',
      { metadata: { name: 'a' }, dta: {} },
      400,
      'BadRequest',
    ],
  ] as const) {
    test(`${what} is answered with ${code} ${reason}`, async () => {
      const answer = await api.send(method, path, { body })
      assert.deepEqual(
        [answer.code, answer.body.kind, answer.body.status, answer.body.reason],
        [code, 'Status', 'Failure', reason],
      )
    })
  }

  for (const [what, plural, body] of [
    ['a pod of the wrong shape', 'pods', { metadata: { name: 'a' }, spec: { containers: 'x' } }],
    ['a pod whose spec is no object', 'pods', { metadata: { name: 'a' }, spec: 5 }],
    ['null in a list', 'pods', { metadata: { name: 'a' }, spec: { containers: [null] } }],
    ['labels of the wrong type', 'configmaps', { metadata: { name: 'a', labels: { b: 5 } } }],
    ['owners of the wrong type', 'configmaps', { metadata: { name: 'a', ownerReferences: 'x' } }],
    ['metadata that is no object', 'configmaps', { metadata: 'x' }],
    ['a body that is no object', 'configmaps', []],
  ] as const) {
    test(`${what} is a bad request`, async () => {
      const answer = await api.send('POST', `/api/v1/namespaces/default/${plural}`, { body })
      assert.deepEqual([answer.code, answer.body.reason], [400, 'BadRequest'])
    })
  }

  test('null is the same as an absent field', async () => {
    const ns = await namespace()
    const body = { metadata: { name: 'a', creationTimestamp: null, labels: null }, data: null }
    const created = await api.ok('POST', `${ns}/configmaps`, body)
    assert.deepEqual([created.data, created.metadata.labels], [undefined, undefined])
  })

  test('an unknown field is dropped with a warning', async () => {
    const ns = await namespace()
    const answer = await api.send('POST', `${ns}/configmaps`, { body: { ...configMap('a'), dta: {} } })
    assert.equal(answer.code, 201)
    assert.equal(answer.headers.warning, '299 - "unknown field \\"dta\\""')
    assert.equal(answer.body.dta, undefined)
  })

  test('the causes of a refusal name the fields', async () => {
    const answer = await api.send('POST', '/api/v1/namespaces/default/configmaps', {
      body: { metadata: { name: 'A', finalizers: ['a b'] } },
    })
    assert.deepEqual(
      answer.body.details.causes.map((cause: Json) => cause.field),
      ['metadata.name', 'metadata.finalizers'],
    )
  })

  test('a body that is too large is refused', async () => {
    const body = { metadata: { name: 'a' }, data: { x: 'y'.repeat(4 * 1024 * 1024) } }
    assert.equal((await api.send('POST', '/api/v1/namespaces/default/configmaps', { body })).code, 413)
  })
})

describe('lists', () => {
  test('pages are of one moment, whatever is written in between', async () => {
    const ns = await namespace()
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
    assert.deepEqual(await names(`${ns}/configmaps`), ['a', 'b', 'cc', 'd'])
  })

  test('selectors choose by labels and fields', async () => {
    const ns = await namespace()
    await api.ok('POST', `${ns}/configmaps`, configMap('a', { labels: { app: 'x' } }))
    await api.ok('POST', `${ns}/configmaps`, configMap('b', { labels: { app: 'y' } }))
    assert.deepEqual(await names(`${ns}/configmaps?labelSelector=app%3Dx`), ['a'])
    assert.deepEqual(await names(`${ns}/configmaps?labelSelector=app+in+(x,y)`), ['a', 'b'])
    assert.deepEqual(await names(`${ns}/configmaps?fieldSelector=metadata.name%3Db`), ['b'])
    await api.ok('DELETE', `${ns}/configmaps?labelSelector=app%3Dx`)
    assert.deepEqual(await names(`${ns}/configmaps`), ['b'])
  })

  test('a revision that is not there yet is not waited for', async () => {
    const answer = await api.send('GET', '/api/v1/pods?resourceVersion=999999999')
    assert.deepEqual([answer.code, answer.body.details.causes[0].reason], [504, 'ResourceVersionTooLarge'])
  })

  test('tables and metadata are answered when they are asked for', async () => {
    const ns = await namespace()
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
    const ns = await namespace()
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

describe('watches', () => {
  test('a watch tells all changes after its revision, in order', async () => {
    const ns = await namespace()
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
    const ns = await namespace()
    const { metadata } = await api.ok('GET', `${ns}/configmaps`)
    const label = (app: string) =>
      api.ok('PATCH', `${ns}/configmaps/a`, { metadata: { labels: { app } } }, 'application/merge-patch+json')
    await api.ok('POST', `${ns}/configmaps`, configMap('a'))
    await label('x')
    await label('y')
    await api.ok('POST', `${ns}/configmaps`, configMap('end', { labels: { app: 'x' } }))
    using events = api.watch(
      `${ns}/configmaps?watch=1&labelSelector=app%3Dx&resourceVersion=${metadata.resourceVersion}`,
    )
    const taken = await take(events, 3)
    assert.deepEqual(short(taken), ['ADDED a', 'DELETED a', 'ADDED end'])
    assert.equal(taken[1]?.object.metadata.labels.app, 'x')
  })

  test('without a revision the present comes first', async () => {
    const ns = await namespace()
    await api.ok('POST', `${ns}/configmaps`, configMap('a'))
    using events = api.watch(`${ns}/configmaps?watch=1`)
    assert.deepEqual(short(await take(events, 1)), ['ADDED a'])
    await api.ok('POST', `${ns}/configmaps`, configMap('b'))
    assert.deepEqual(short(await take(events, 1)), ['ADDED b'])
  })

  test('a streamed list ends with a marked bookmark', async () => {
    const ns = await namespace()
    await api.ok('POST', `${ns}/configmaps`, configMap('a'))
    const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    using events = api.watch(`${ns}/configmaps?${query}`)
    const taken = await take(events, 2)
    assert.deepEqual(short(taken), ['ADDED a', 'BOOKMARK '])
    assert.equal(taken[1]?.object.metadata.annotations['k8s.io/initial-events-end'], 'true')
  })

  test('a watch ends at its time with a bookmark of the whole store', async () => {
    const ns = await namespace()
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
    const ns = await namespace()
    await api.ok('POST', `${ns}/configmaps`, configMap('a'))
    await api.ok('POST', `${ns}/configmaps`, configMap('b'))
    using events = api.watch(`${ns}/configmaps?watch=1&fieldSelector=metadata.name%3Db`)
    assert.deepEqual(short(await take(events, 1)), ['ADDED b'])
  })

  test('a client that does not read holds up nobody, and reads all of it later', async () => {
    const ns = await namespace()
    using events = api.watch(`${ns}/configmaps?watch=1`)
    const total = 300
    const data = { x: 'y'.repeat(20_000) }
    for (let index = 0; index < total; index += 1) {
      await api.ok('POST', `${ns}/configmaps`, { metadata: { name: `c${index}` }, data })
    }
    const taken = await take(events, total)
    assert.equal(new Set(taken.map((event) => event.object.metadata.name)).size, total)
  })
})

describe('deletion', () => {
  test('finalizers hold an object until the last is taken away', async () => {
    const ns = await namespace()
    await api.ok('POST', `${ns}/configmaps`, configMap('a', { finalizers: ['example.com/x'] }))
    const marked = await api.ok('DELETE', `${ns}/configmaps/a`)
    assert.ok(marked.metadata.deletionTimestamp)
    const more = { metadata: { finalizers: ['example.com/x', 'example.com/y'] } }
    assert.equal(
      (await api.send('PATCH', `${ns}/configmaps/a`, { body: more, type: 'application/merge-patch+json' })).code,
      422,
    )
    await api.ok('PATCH', `${ns}/configmaps/a`, { metadata: { finalizers: null } }, 'application/merge-patch+json')
    assert.ok(await isGone(`${ns}/configmaps/a`))
  })

  test('preconditions protect another object of the same name', async () => {
    const ns = await namespace()
    await api.ok('POST', `${ns}/configmaps`, configMap('a'))
    const body = { preconditions: { uid: 'other' } }
    assert.equal((await api.send('DELETE', `${ns}/configmaps/a`, { body })).code, 409)
  })

  const pod = (name: string, spec: object = {}) => ({
    metadata: { name },
    spec: { containers: [{ name: 'c', image: 'host' }], ...spec },
  })

  test('a pod on a node is ended gracefully, and gone when the node says so', async () => {
    const ns = await namespace()
    await api.ok('POST', `${ns}/pods`, pod('p', { terminationGracePeriodSeconds: 7 }))
    await api.ok('POST', `${ns}/pods/p/binding`, { target: { kind: 'Node', name: 'n' } })
    const bound = await api.ok('GET', `${ns}/pods/p`)
    assert.equal(bound.spec.nodeName, 'n')
    assert.equal(bound.status.conditions[0].type, 'PodScheduled')
    assert.equal((await api.send('POST', `${ns}/pods/p/binding`, { body: { target: { name: 'm' } } })).code, 409)
    const marked = await api.ok('DELETE', `${ns}/pods/p`)
    assert.equal(marked.metadata.deletionGracePeriodSeconds, 7)
    const shorter = await api.ok('DELETE', `${ns}/pods/p?gracePeriodSeconds=3`)
    assert.equal(shorter.metadata.deletionGracePeriodSeconds, 3)
    const longer = await api.ok('DELETE', `${ns}/pods/p?gracePeriodSeconds=60`)
    assert.equal(longer.metadata.deletionGracePeriodSeconds, 3)
    await api.ok('DELETE', `${ns}/pods/p?gracePeriodSeconds=0`)
    assert.ok(await isGone(`${ns}/pods/p`))
  })

  test('a pod without a node goes at once', async () => {
    const ns = await namespace()
    await api.ok('POST', `${ns}/pods`, pod('p'))
    await api.ok('DELETE', `${ns}/pods/p`)
    assert.ok(await isGone(`${ns}/pods/p`))
  })

  test('an eviction deletes, unless a disruption budget forbids it', async () => {
    const ns = await namespace()
    const policies = ns.replace('/api/v1', '/apis/policy/v1')
    await api.ok('POST', `${policies}/poddisruptionbudgets`, {
      metadata: { name: 'b' },
      spec: { minAvailable: 1, selector: { matchLabels: { a: 'b' } } },
    })
    await api.ok('POST', `${ns}/pods`, { ...pod('held'), metadata: { name: 'held', labels: { a: 'b' } } })
    await api.ok('POST', `${ns}/pods`, pod('free'))
    const eviction = (name: string) => ({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } })
    assert.equal((await api.send('POST', `${ns}/pods/held/eviction`, { body: eviction('held') })).code, 429)
    await api.ok('POST', `${ns}/pods/free/eviction`, eviction('free'))
    assert.deepEqual(await names(`${ns}/pods`), ['held'])
  })

  async function owned(ns: string, owner: Json, name: string, blocks = false): Promise<void> {
    const { uid } = owner.metadata
    const reference = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: owner.metadata.name,
      uid,
      blockOwnerDeletion: blocks,
    }
    await api.ok('POST', `${ns}/configmaps`, configMap(name, { ownerReferences: [reference] }))
  }

  test('in the background, dependents follow their owner', async () => {
    const ns = await namespace()
    const owner = await api.ok('POST', `${ns}/configmaps`, configMap('owner'))
    await owned(ns, owner, 'child')
    await owned(ns, await api.ok('GET', `${ns}/configmaps/child`), 'grandchild')
    await api.ok('DELETE', `${ns}/configmaps/owner`)
    await eventually(`${ns}/configmaps`, async () => (await names(`${ns}/configmaps`)).length === 0)
  })

  test('in the foreground, the owner waits for its dependents', async () => {
    const ns = await namespace()
    const owner = await api.ok('POST', `${ns}/configmaps`, configMap('owner'))
    await owned(ns, owner, 'child', true)
    await api.ok(
      'PATCH',
      `${ns}/configmaps/child`,
      { metadata: { finalizers: ['example.com/x'] } },
      'application/merge-patch+json',
    )
    await api.ok('DELETE', `${ns}/configmaps/owner?propagationPolicy=Foreground`)
    await eventually(`${ns}/configmaps`, async () => {
      const child = await api.ok('GET', `${ns}/configmaps/child`)
      return child.metadata.deletionTimestamp !== undefined
    })
    assert.deepEqual(await names(`${ns}/configmaps`), ['child', 'owner'])
    await api.ok('PATCH', `${ns}/configmaps/child`, { metadata: { finalizers: null } }, 'application/merge-patch+json')
    await eventually(`${ns}/configmaps`, async () => (await names(`${ns}/configmaps`)).length === 0)
  })

  test('orphaned dependents stay without their owner', async () => {
    const ns = await namespace()
    const owner = await api.ok('POST', `${ns}/configmaps`, configMap('owner'))
    await owned(ns, owner, 'child')
    await api.ok('DELETE', `${ns}/configmaps/owner`, { propagationPolicy: 'Orphan' })
    await eventually(`${ns}/configmaps`, () => isGone(`${ns}/configmaps/owner`))
    assert.equal((await api.ok('GET', `${ns}/configmaps/child`)).metadata.ownerReferences, undefined)
  })

  test('a dependent with another living owner stays, and loses the reference', async () => {
    const ns = await namespace()
    const one = await api.ok('POST', `${ns}/configmaps`, configMap('one'))
    const two = await api.ok('POST', `${ns}/configmaps`, configMap('two'))
    const reference = (owner: Json) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: owner.metadata.name,
      uid: owner.metadata.uid,
    })
    await api.ok('POST', `${ns}/configmaps`, configMap('child', { ownerReferences: [reference(one), reference(two)] }))
    await api.ok('DELETE', `${ns}/configmaps/one`)
    await eventually(`${ns}/configmaps`, async () => {
      const child = await api.ok('GET', `${ns}/configmaps/child`)
      return child.metadata.ownerReferences.length === 1
    })
  })

  test('a namespace goes with all that is in it, and takes nothing new meanwhile', async () => {
    const ns = await namespace()
    await api.ok('POST', `${ns}/configmaps`, configMap('held', { finalizers: ['example.com/x'] }))
    await api.ok('POST', `${ns}/configmaps`, configMap('free'))
    const marked = await api.ok('DELETE', ns)
    assert.equal(marked.status.phase, 'Terminating')
    const refused = await api.send('POST', `${ns}/configmaps`, { body: configMap('late') })
    assert.equal(refused.code, 403)
    await eventually(`${ns}/configmaps`, async () => (await names(`${ns}/configmaps`)).join() === 'held')
    assert.equal((await api.send('GET', ns)).code, 200)
    await api.ok('PATCH', `${ns}/configmaps/held`, { metadata: { finalizers: null } }, 'application/merge-patch+json')
    await eventually('/api/v1/namespaces', () => isGone(ns))
  })
})

describe('the server', () => {
  test('health, version and metrics are answered', async () => {
    assert.equal((await api.send('GET', '/readyz')).body, 'ok')
    assert.equal((await api.ok('GET', '/version')).major, '1')
    assert.match((await api.send('GET', '/metrics')).body, /apiserver_storage_objects\{resource="namespaces"\}/)
  })

  test('discovery lists every resource, in both forms', async () => {
    const core = await api.ok('GET', '/api/v1')
    const pods = core.resources.find((resource: Json) => resource.name === 'pods')
    assert.deepEqual(pods.shortNames, ['po'])
    assert.ok(core.resources.some((resource: Json) => resource.name === 'pods/log'))
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'
    const answer = await api.send('GET', '/apis', { headers: { accept } })
    assert.match(String(answer.headers['content-type']), /as=APIGroupDiscoveryList/)
    const apps = answer.body.items.find((item: Json) => item.metadata.name === 'apps')
    assert.ok(apps.versions[0].resources.some((resource: Json) => resource.resource === 'deployments'))
  })

  test('the API has a Service for pods to reach it', async () => {
    const service = await api.ok('GET', '/api/v1/namespaces/default/services/kubernetes')
    assert.equal(service.spec.clusterIP, '10.96.0.1')
    const slice = await api.ok('GET', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes')
    assert.equal(slice.ports[0].port, api.server.addresses[0]?.port)
  })

  test('who is nobody may do nothing', async () => {
    const anonymous = await api.send('GET', '/api/v1/secrets', { headers: { 'impersonate-user': 'nobody' } })
    assert.deepEqual([anonymous.code, anonymous.body.reason], [403, 'Forbidden'])
    assert.match(
      anonymous.body.message,
      /User "nobody" cannot list resource "secrets" in API group "" at the cluster scope/,
    )
    assert.equal((await api.send('GET', '/api/v1/pods', { headers: { 'impersonate-group': 'x' } })).code, 400)
  })
})
