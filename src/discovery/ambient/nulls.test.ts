import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutNulls } from './nulls.ts'
import { createTestMesh, make, served, servedNames } from './testing.ts'

test('fields that are null go, elements of lists and values of label maps stay', () => {
  const object = {
    a: null,
    b: { c: null, d: [null, { e: null, f: 1 }] },
    labels: { x: null, y: 'z' },
    selector: { matchLabels: { x: null }, matchExpressions: null },
    annotations: null,
  }
  assert.deepEqual(withoutNulls(object), {
    b: { d: [null, { f: 1 }] },
    labels: { x: null, y: 'z' },
    selector: { matchLabels: { x: null }, matchExpressions: null },
  })
  const clean = { a: { b: [1, { c: 'd' }] } }
  assert.equal(withoutNulls(clean), clean)
})

test('objects with fields that are written without a value are served as if those were not there', () => {
  const mesh = createTestMesh()
  const nothing = null as never
  mesh.apply(
    Object.assign(make.pod('ns1/a', '10.0.0.1', { app: 'a' }, { deletionTimestamp: nothing, generateName: nothing }), {
      spec: { containers: [{ name: 'c', ports: nothing }], initContainers: nothing, nodeName: nothing },
    }),
    Object.assign(make.service('ns1/svc', ''), {
      spec: {
        clusterIP: nothing,
        clusterIPs: nothing,
        selector: nothing,
        ports: [{ name: 'http', port: 80, targetPort: nothing, appProtocol: nothing }],
      },
    }),
    make.serviceEntry('ns1/se', {
      hosts: ['x.com'],
      resolution: 'DNS',
      addresses: nothing,
      endpoints: nothing,
      workloadSelector: nothing,
    }),
    make.workloadEntry('ns1/vm', { address: nothing, ports: nothing, locality: nothing, weight: nothing }),
  )
  assert.deepEqual(mesh.reports, [])
  assert.deepEqual(servedNames(mesh), [
    'c1//Pod/ns1/a',
    'c1/networking.istio.io/ServiceEntry/ns1/se/x.com',
    'c1/networking.istio.io/WorkloadEntry/ns1/vm',
    'ns1/svc.ns1.svc.cluster.local',
    'ns1/x.com',
  ])
  assert.equal(served(mesh, 'c1//Pod/ns1/a')?.status, undefined)
})
