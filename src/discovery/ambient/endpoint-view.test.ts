import assert from 'node:assert/strict'
import { test } from 'node:test'
import { viewEndpoints } from './endpoint-view.ts'
import { createTestMesh, make } from './testing.ts'

test('each service is shown with those behind it, healthy or not, and one without anybody with none', () => {
  const mesh = createTestMesh()
  mesh.apply(
    make.service('ns1/web', '10.1.0.1', { app: 'a' }),
    make.service('ns1/idle', '10.1.0.2', { app: 'none' }),
    Object.assign(make.pod('ns1/b', '10.0.0.2', { app: 'a' }), { status: { podIP: '10.0.0.2' } }),
    Object.assign(make.pod('ns1/a', '10.0.0.1', { app: 'a' }), {
      status: { podIP: '10.0.0.1', conditions: [{ type: 'Ready', status: 'True' }] },
    }),
    make.serviceEntry('ns1/outside', {
      hosts: ['outside.example'],
      resolution: 'DNS',
      endpoints: [{ address: 'far.example' }],
    }),
  )
  const [idle, web, outside] = [
    'ns1/idle.ns1.svc.cluster.local',
    'ns1/web.ns1.svc.cluster.local',
    'ns1/outside.example',
  ]
  const view = new Map(viewEndpoints(mesh.index).map(({ service, endpoints }) => [service, endpoints]))
  assert.deepEqual([...view.keys()], [idle, outside, web])
  assert.deepEqual(view.get(idle ?? ''), [])
  const common = { network: '', cluster: 'c1', ports: { 80: 8080 } }
  assert.deepEqual(view.get(web ?? ''), [
    { workload: 'c1//Pod/ns1/a', addresses: ['10.0.0.1'], isHealthy: true, ...common },
    { workload: 'c1//Pod/ns1/b', addresses: ['10.0.0.2'], isHealthy: false, ...common },
  ])
  assert.deepEqual(
    view.get(outside ?? '')?.map(({ addresses }) => addresses),
    [['far.example']],
  )
})
