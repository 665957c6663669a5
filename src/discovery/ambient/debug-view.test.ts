import assert from 'node:assert/strict'
import { test } from 'node:test'
import { viewAmbient } from './debug-view.ts'
import { createTestMesh, make } from './testing.ts'

test('the view shows addresses as text', () => {
  const mesh = createTestMesh()
  mesh.apply(
    make.namespace('ns1', { 'istio.io/use-waypoint': 'wp' }),
    make.waypoint('ns1/wp', { for: 'all' }),
    make.pod('ns1/a', '10.0.0.1', { app: 'a' }),
    make.service('ns1/svc', 'fd00::7', { app: 'a' }),
    make.policy('ns1/p', { rules: [{ from: [{ source: { ipBlocks: ['10.0.0.0/8'] } }] }] }),
  )
  const { workloads, services, policies } = viewAmbient(mesh.index)
  assert.deepEqual(
    workloads.map((one) => (one as { addresses: unknown }).addresses),
    [['10.0.0.1']],
  )
  assert.deepEqual(
    services.map((one) => (one as { addresses: unknown }).addresses),
    [[{ address: 'fd00::7' }]],
  )
  assert.deepEqual(policies, [
    {
      name: 'p',
      namespace: 'ns1',
      scope: 'NAMESPACE',
      groups: [{ rules: [{ matches: [{ sourceIps: [{ address: '10.0.0.0', length: 8 }] }] }] }],
    },
  ])
})
