import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  attachService,
  attachWorkload,
  type NamespaceDefaults,
  namespaceDefaultsOf,
  type WaypointLookup,
} from './attachment.ts'
import type { Waypoint } from './waypoint.ts'

const waypoint = (namespace: string, name: string, trafficType = 'service'): Waypoint => ({
  cluster: 'c1',
  namespace,
  name,
  address: { destination: { case: 'hostname', value: { namespace, hostname: name } }, hboneMtlsPort: 15008 },
  trafficType,
  binding: undefined,
  allowedNamespaces: { kind: 'same' },
})

function lookup(
  waypoints: readonly Waypoint[],
  labels: Record<string, string> = {},
  options: { readonly admits?: boolean; readonly asked?: string[] } = {},
): WaypointLookup {
  const defaults: NamespaceDefaults = namespaceDefaultsOf({ labels })
  return {
    waypoint: (namespace, name) => waypoints.find((one) => one.namespace === namespace && one.name === name),
    admits: () => options.admits ?? true,
    namespaceDefaults: () => {
      options.asked?.push('namespace')
      return defaults
    },
  }
}

const service = (labels: Record<string, string>, annotations: Record<string, string> = {}) => ({
  namespace: 'ns1',
  labels,
  annotations,
  confinedToNamespace: false,
})

test('the label of the object comes before the one of its namespace; none means none', () => {
  const found = lookup([waypoint('ns1', 'own'), waypoint('ns1', 'inherited')], { 'istio.io/use-waypoint': 'inherited' })
  const named = (labels: Record<string, string>) => {
    const attachment = attachService(found, service(labels))
    return attachment.kind === 'bound' ? attachment.waypoint.name : attachment.kind
  }
  assert.equal(named({ 'istio.io/use-waypoint': 'own' }), 'own')
  assert.equal(named({}), 'inherited')
  assert.equal(named({ 'istio.io/use-waypoint': 'none' }), 'none')
})

test('the namespace is not read when the object speaks for itself', () => {
  const asked: string[] = []
  attachWorkload(lookup([waypoint('ns1', 'w', 'all')], {}, { asked }), {
    namespace: 'ns1',
    labels: { 'istio.io/use-waypoint': 'w' },
  })
  assert.deepEqual(asked, [])
})

test('a missing waypoint of the object does not fall back to the namespace', () => {
  const found = lookup([waypoint('ns1', 'inherited')], { 'istio.io/use-waypoint': 'inherited' })
  const attachment = attachService(found, service({ 'istio.io/use-waypoint': 'missing' }))
  assert.equal(attachment.kind === 'refused' && attachment.refusal.reason, 'WaypointIsNotReady')
})

test('a waypoint that does not admit the namespace, or not this traffic, is refused', () => {
  const labels = { 'istio.io/use-waypoint': 'w' }
  const reason = (found: WaypointLookup) => {
    const attachment = attachService(found, service(labels))
    return attachment.kind === 'refused' ? attachment.refusal.reason : attachment.kind
  }
  assert.equal(reason(lookup([waypoint('ns1', 'w')], {}, { admits: false })), 'AttachmentDenied')
  assert.equal(reason(lookup([waypoint('ns1', 'w', 'workload')])), 'UnsupportedTrafficType')
  assert.equal(reason(lookup([waypoint('ns1', 'w', 'all')])), 'bound')
})

test('a workload with an inherited waypoint for services only simply has none', () => {
  const inherited = lookup([waypoint('ns1', 'w')], { 'istio.io/use-waypoint': 'w' })
  assert.equal(attachWorkload(inherited, { namespace: 'ns1', labels: {} }).kind, 'none')
  const own = attachWorkload(inherited, { namespace: 'ns1', labels: { 'istio.io/use-waypoint': 'w' } })
  assert.equal(own.kind, 'refused')
})

test('waypoints and gateways themselves have no waypoint', () => {
  const found = lookup([waypoint('ns1', 'w')], { 'istio.io/use-waypoint': 'w' })
  const labels = { 'gateway.istio.io/managed': 'istio.io-mesh-controller' }
  assert.equal(attachService(found, service(labels)).kind, 'none')
})

test('an entry seen only in its namespace is not bound across namespaces', () => {
  const labels = { 'istio.io/use-waypoint': 'w', 'istio.io/use-waypoint-namespace': 'other' }
  const attachment = attachService(lookup([waypoint('other', 'w')]), { ...service(labels), confinedToNamespace: true })
  assert.equal(attachment.kind === 'refused' && attachment.refusal.reason, 'CrossNamespaceWaypointForbidden')
})

test('a canary with a bad weight is refused, and the primary stays', () => {
  const labels = { 'istio.io/use-waypoint': 'w', 'istio.io/use-waypoint-canary': 'c' }
  for (const weight of ['101', '-1', 'half', '1.5', '']) {
    const attachment = attachService(
      lookup([waypoint('ns1', 'w'), waypoint('ns1', 'c')]),
      service(labels, { 'istio.io/use-waypoint-canary-weight': weight }),
    )
    assert.equal(attachment.kind, 'bound')
    assert.equal(
      attachment.kind === 'bound' && attachment.canary?.kind === 'refused' && attachment.canary.refusal.reason,
      'CanaryInvalidWeight',
      weight,
    )
  }
})
