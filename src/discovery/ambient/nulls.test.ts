import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '../../api/index.ts'
import { withoutNulls } from './nulls.ts'
import { createTestMesh, make, served, servedNames } from './testing.ts'

test('fields that are null go, elements of lists stay, values of maps of texts are empty', () => {
  const object = {
    a: null,
    b: { c: null, d: [null, { e: null, f: 1 }] },
    labels: { x: null, y: 'z', labels: null },
    selector: { matchLabels: { x: null }, matchExpressions: null },
    annotations: null,
    template: { selector: { x: null }, metadata: { annotations: { x: null } } },
  }
  assert.deepEqual(withoutNulls(object), {
    b: { d: [null, { f: 1 }] },
    labels: { x: '', y: 'z', labels: '' },
    selector: { matchLabels: { x: '' } },
    template: { selector: { x: '' }, metadata: { annotations: { x: '' } } },
  })
  const clean = { a: { b: [1, { c: 'd' }] }, labels: { x: '' } }
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

test('a selector with a name without a value selects those that have the name without one', () => {
  const mesh = createTestMesh()
  const nothing = null as never
  mesh.apply(
    make.pod('ns1/without', '10.0.0.1', { app: 'a' }),
    make.pod('ns1/empty', '10.0.0.2', { app: '' }),
    make.pod('ns1/null', '10.0.0.3', { app: nothing }),
    make.service('ns1/svc', '10.1.0.1', { app: nothing }),
  )
  const selected = ['without', 'empty', 'null'].filter((name) =>
    JSON.stringify(served(mesh, `c1//Pod/ns1/${name}`)).includes('ns1/svc.ns1.svc.cluster.local'),
  )
  assert.deepEqual(selected, ['empty', 'null'])
})

/** Names of labels and annotations that are read of objects. */
const read = [
  'ambient.istio.io/redirection',
  'ambient.istio.io/waypoint-inbound-binding',
  'app',
  'app.kubernetes.io/name',
  'gateway.istio.io/service-account',
  'gateway.networking.k8s.io/gateway-name',
  'istio.io/autoRegistrationGroup',
  'istio.io/connect-strategy',
  'istio.io/dry-run',
  'istio.io/global',
  'istio.io/ingress-use-waypoint',
  'istio.io/rev',
  'istio.io/use-waypoint',
  'istio.io/use-waypoint-namespace',
  'istio.io/waypoint-for',
  'kubernetes.io/service-name',
  'networking.istio.io/enable-autoallocate-ip',
  'networking.istio.io/traffic-distribution',
  'networking.istio.io/tunnel',
  'pod-template-hash',
  'service.istio.io/canonical-name',
  'service.istio.io/canonical-revision',
  'service.istio.io/workload-name',
  'topology.istio.io/network',
  'topology.istio.io/subzone',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
]

for (const where of ['labels', 'annotations'] as const) {
  test(`${where} without a value mean in every object what those with an empty one mean`, () => {
    const [nulls, empties] = [null, ''].map((value) => {
      const mesh = createTestMesh()
      const texts = Object.fromEntries(read.map((name) => [name, value]))
      for (const object of oneOfEach(where === 'labels' ? texts : {})) {
        mesh.apply({ ...object, metadata: { ...object.metadata, [where]: texts as never } })
      }
      assert.deepEqual(mesh.reports, [])
      return [servedNames(mesh), servedNames(mesh).map((name) => served(mesh, name))]
    })
    assert.deepEqual(nulls, empties)
  })
}

function oneOfEach(labels: Readonly<Record<string, unknown>>): KubeObject[] {
  return [
    make.namespace('ns1'),
    make.node('n1'),
    make.gatewayClass('istio-waypoint'),
    make.waypoint('ns1/wp'),
    make.pod('ns1/a', '10.0.0.1'),
    make.service('ns1/svc', '10.1.1.1'),
    make.slice('ns1/s', 'svc', [{ addresses: ['10.0.0.1'] }]),
    make.serviceEntry('ns1/se', {
      hosts: ['x.com'],
      addresses: ['1.1.1.1'],
      resolution: 'STATIC',
      endpoints: [{ address: '2.2.2.2', labels }],
    }),
    make.workloadEntry('ns1/we', { address: '3.3.3.3', labels }),
    make.policy('ns1/ap', { action: 'DENY' }),
    make.peer('ns1/pa', { mtls: { mode: 'STRICT' } }),
  ]
}
