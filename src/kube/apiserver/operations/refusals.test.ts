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

for (const [what, method, path, body, code, reason] of [
  ['an object that is not there', 'GET', '/api/v1/namespaces/default/configmaps/none', undefined, 404, 'NotFound'],
  ['a resource that is not there', 'GET', '/api/v1/things', undefined, 404, 'NotFound'],
  ['a second object of a name', 'POST', '/api/v1/namespaces', { metadata: { name: 'default' } }, 409, 'AlreadyExists'],
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
  const ns = await api.namespace()
  const body = { metadata: { name: 'a', creationTimestamp: null, labels: null }, data: null }
  const created = await api.ok('POST', `${ns}/configmaps`, body)
  assert.deepEqual([created.data, created.metadata.labels], [undefined, undefined])
})

test('an unknown field is dropped with a warning', async () => {
  const ns = await api.namespace()
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
