import assert from 'node:assert/strict'
import test from 'node:test'
import type { EndpointSlice, Service } from '../node/types.ts'
import { servicePorts } from './backends.ts'
import { serviceRuleset } from './ruleset.ts'

const service = (spec: Partial<NonNullable<Service['spec']>> = {}): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'shop' },
  spec: { clusterIP: '10.96.0.7', ports: [{ name: 'http', port: 80 }], ...spec },
})

type Place = readonly [ip: string, ready: boolean, serving?: boolean, nodeName?: string]
const slice = (...places: Place[]): EndpointSlice => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'web-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 8080 }],
  endpoints: places.map(([ip, ready, serving = ready, nodeName = 'n1']) => ({
    addresses: [ip],
    conditions: { ready, serving },
    nodeName,
  })),
})

const settings = { table: 't', podCidr: '10.244.0.0/16', directCidrs: ['10.244.0.0/16', '10.96.0.0/16'] }
const backendsOf = (spec: Partial<NonNullable<Service['spec']>>, ...places: Place[]) =>
  servicePorts([service(spec)], [slice(...places)], 'n1')[0]

test('ready endpoints are the backends', () => {
  assert.deepEqual(backendsOf({}, ['10.244.0.2', true], ['10.244.0.3', false])?.backends, [
    { ip: '10.244.0.2', port: 8080 },
  ])
})

test('with no ready endpoint those that end but still serve are used', () => {
  assert.deepEqual(backendsOf({}, ['10.244.0.3', false, true], ['10.244.0.4', false])?.backends, [
    { ip: '10.244.0.3', port: 8080 },
  ])
})

test('a local policy uses the endpoints of this node', () => {
  const places: Place[] = [
    ['10.244.0.2', true, true, 'n1'],
    ['10.244.1.2', true, true, 'n2'],
  ]
  assert.equal(backendsOf({ internalTrafficPolicy: 'Local' }, ...places)?.backends.length, 1)
  const external = backendsOf({ externalTrafficPolicy: 'Local', type: 'NodePort' }, ...places)
  assert.deepEqual([external?.backends.length, external?.external.backends.length], [2, 1])
})

test('headless and external services have no rules', () => {
  assert.deepEqual(servicePorts([service({ clusterIP: 'None' })], [], 'n1'), [])
  assert.deepEqual(servicePorts([service({ type: 'ExternalName', externalName: 'x.org' })], [], 'n1'), [])
})

test('connections are spread over the backends and masqueraded when they come from outside or from the backend itself', () => {
  const { text } = serviceRuleset(
    servicePorts([service()], [slice(['10.244.0.2', true], ['10.244.1.2', true])], 'n1'),
    settings,
  )
  assert.match(text, /add element ip t service-ips \{ 10\.96\.0\.7 \. tcp \. 80 : goto svc-/)
  assert.match(text, /numgen random mod 2 vmap/)
  assert.match(text, /dnat to 10\.244\.0\.2:8080/)
  assert.match(text, /ip saddr 10\.244\.0\.2 meta mark set meta mark or 0x4000/)
  assert.match(text, /ip saddr != 10\.244\.0\.0\/16 meta mark set/)
})

test('a service without backends is refused', () => {
  const { text, chains } = serviceRuleset(servicePorts([service()], [], 'n1'), settings)
  assert.match(text, /add element ip t no-backends \{ 10\.96\.0\.7 \. tcp \. 80 \}/)
  assert.equal(chains.size, 0)
})

test('what is no longer used is deleted, session memory is kept while it is used', () => {
  const sticky = service({ sessionAffinity: 'ClientIP' })
  const before = serviceRuleset(
    servicePorts([sticky], [slice(['10.244.0.2', true], ['10.244.0.3', true])], 'n1'),
    settings,
  )
  const after = serviceRuleset(servicePorts([sticky], [slice(['10.244.0.2', true])], 'n1'), settings, before)
  assert.equal(before.sets.size, 2)
  assert.equal(after.text.match(/delete set/g)?.length, 1)
  assert.equal(after.text.match(/delete chain/g)?.length, 1)
  assert.match(after.text, /update @aff-[0-9a-f]+ \{ ip saddr \}/)
})

test('a node port is reached on every address of the node', () => {
  const nodePort = service({ type: 'NodePort', ports: [{ name: 'http', port: 80, nodePort: 30080 }] })
  const { text } = serviceRuleset(servicePorts([nodePort], [slice(['10.244.0.2', true])], 'n1'), settings)
  assert.match(text, /add element ip t node-ports \{ tcp \. 30080 : goto ext-/)
})
