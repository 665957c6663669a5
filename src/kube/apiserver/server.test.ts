import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Json, startTestApi, type TestApi } from './testing.ts'

let api: TestApi
before(async () => {
  api = await startTestApi()
})
after(async () => {
  await api[Symbol.asyncDispose]()
})

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
