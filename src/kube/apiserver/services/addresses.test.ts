import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { KindDefinition, KubeObject } from '../../../api/index.ts'
import { Store } from '../store/store.ts'
import { ServiceAddresses } from './addresses.ts'

const kind: KindDefinition = {
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
  listKind: 'ServiceList',
  singular: 'service',
  subresources: {},
}

interface Spec {
  clusterIP?: string
  clusterIPs?: string[]
  type?: string
  ports?: { port: number; nodePort?: number; protocol?: string }[]
  externalTrafficPolicy?: string
}

function start(t: TestContext, cidr: string) {
  const path = mkdtempSync(join(tmpdir(), 'lateen-services-'))
  const store = new Store(join(path, 'db'), (error) => assert.fail(String(error)))
  t.after(() => {
    store[Symbol.dispose]()
    rmSync(path, { recursive: true })
  })
  const addresses = new ServiceAddresses(store, cidr)
  const create = (name: string, spec: Spec): Spec => {
    const object: KubeObject<Spec> = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace: 'default' },
      spec,
    }
    addresses.assign(kind, object, undefined)
    store.put('/services', object)
    return object.spec ?? {}
  }
  return { addresses, create, store }
}

test('a service gets a free address; none is given twice', (t) => {
  const { create, addresses } = start(t, '10.96.0.0/28')
  assert.equal(addresses.apiAddress, '10.96.0.1')
  const given = new Set<string | undefined>()
  for (let count = 0; count < 13; count += 1) given.add(create(`s${count}`, { type: 'ClusterIP' }).clusterIP)
  assert.equal(given.size, 13)
  assert.ok(!given.has('10.96.0.0') && !given.has('10.96.0.1') && !given.has('10.96.0.15'))
  assert.throws(() => create('full', {}), /the range 10\.96\.0\.0\/28 is full/)
})

test('a wished address is given when it is free and in the range', (t) => {
  const { create } = start(t, '10.96.0.0/16')
  assert.equal(create('a', { clusterIP: '10.96.7.7' }).clusterIP, '10.96.7.7')
  assert.throws(() => create('b', { clusterIP: '10.96.7.7' }), { code: 422, message: /already allocated/ })
  assert.throws(() => create('b', { clusterIP: '10.97.0.1' }), { code: 422, message: /not in the valid range/ })
  assert.throws(() => create('b', { clusterIP: 'x' }), { code: 422, message: /not an IP address/ })
})

test('headless and external services get no address', (t) => {
  const { create } = start(t, 'fd00::/108')
  assert.equal(create('headless', { clusterIP: 'None' }).clusterIP, 'None')
  assert.equal(create('external', { type: 'ExternalName' }).clusterIP, undefined)
  assert.match(create('six', {}).clusterIP ?? '', /^fd00::/)
})

test('node ports are given, kept apart by protocol, and checked', (t) => {
  const { create } = start(t, '10.96.0.0/16')
  const spec = create('a', { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }, { port: 81 }] })
  assert.equal(spec.ports?.[0]?.nodePort, 30080)
  const second = spec.ports?.[1]?.nodePort ?? 0
  assert.ok(second >= 30000 && second <= 32767 && second !== 30080)
  assert.throws(() => create('b', { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] }), { code: 422 })
  assert.throws(() => create('b', { type: 'NodePort', ports: [{ port: 80, nodePort: 80 }] }), { code: 422 })
  create('c', { type: 'NodePort', ports: [{ port: 80, nodePort: 30080, protocol: 'UDP' }] })
})

test('an address may not change', (t) => {
  const { addresses } = start(t, '10.96.0.0/16')
  const service = (clusterIP: string): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'a', namespace: 'default' },
    spec: { clusterIP },
  })
  assert.throws(() => addresses.assign(kind, service('10.96.0.9'), service('10.96.0.8')), {
    code: 422,
    message: /may not change once set/,
  })
})
