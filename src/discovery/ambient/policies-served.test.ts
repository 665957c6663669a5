// Which policies workloads list and which are sent, while objects come, change and go.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromBinary, toJson } from '@bufbuild/protobuf'
import type { KubeObject } from '../../api/index.ts'
import { security } from '../../proto/index.ts'
import { conditionsOf, createTestMesh, make, served, type TestMesh } from './testing.ts'

const pod = 'c1//Pod/ns1/a'
const strictKey = 'istio-system/istio_converted_static_strict'
const listed = (mesh: TestMesh, name = pod) => served(mesh, name)?.authorizationPolicies ?? []
const sent = ({ index }: TestMesh) => [...index.authorizations.list()].map(({ name }) => name).sort()
const policyOf = ({ index }: TestMesh, name: string): unknown => {
  const found = index.authorizations.get(name)
  return found && toJson(security.AuthorizationSchema, fromBinary(security.AuthorizationSchema, found.body))
}
const peer = (path: string, mode: string | undefined, more: object = {}, metadata: object = {}): KubeObject => {
  const one = make.peer(path, { ...(mode === undefined ? {} : { mtls: { mode } }), ...more })
  return { ...one, metadata: { ...one.metadata, ...metadata } }
}
const selects = (app: string) => ({ selector: { matchLabels: { app } } })
const noIdentity = { notPrincipals: [{ presence: {} }] }

test('selector policies of the root namespace and of the own one are listed, in order; those without are not', () => {
  const mesh = createTestMesh()
  mesh.apply(
    make.pod('ns1/a', '10.0.0.1', { app: 'a', tier: 't' }),
    make.pod('istio-system/r', '10.0.0.2', { app: 'a' }),
    make.policy('ns1/z', { ...selects('a'), rules: [{}] }),
    make.policy('ns1/b', { selector: { matchLabels: { app: 'a', tier: 't' } } }),
    make.policy('ns1/c', { selector: { matchLabels: { app: 'a', tier: 'u' } } }),
    make.policy('ns1/d', { rules: [{}] }),
    make.policy('ns1/e', { selector: {} }),
    make.policy('ns1/f', { selector: { matchLabels: {} } }),
    make.policy('ns2/g', selects('a')),
    make.policy('istio-system/h', selects('a')),
    make.policy('istio-system/i', {}),
    make.policy('ns1/j', { ...selects('a'), action: 'AUDIT' }),
    make.policy('ns1/k', { ...selects('a'), action: 'CUSTOM', provider: { name: 'x' } }),
  )
  assert.deepEqual(listed(mesh), ['istio-system/h', 'ns1/b', 'ns1/z'])
  assert.deepEqual(listed(mesh, 'c1//Pod/istio-system/r'), ['istio-system/h'])
  const scope = (name: string) => (policyOf(mesh, name) as { scope?: string } | undefined)?.scope ?? 'GLOBAL'
  assert.deepEqual(
    sent(mesh).map((name) => `${name} ${scope(name)}`),
    [
      'istio-system/h WORKLOAD_SELECTOR',
      'istio-system/i GLOBAL',
      'ns1/b WORKLOAD_SELECTOR',
      'ns1/c WORKLOAD_SELECTOR',
      'ns1/d NAMESPACE',
      'ns1/e NAMESPACE',
      'ns1/f NAMESPACE',
      'ns1/z WORKLOAD_SELECTOR',
      'ns2/g WORKLOAD_SELECTOR',
    ],
  )
})

test('a policy changes what it must: its rules itself alone, its selector the workloads alone', () => {
  const mesh = createTestMesh()
  mesh.apply(make.pod('ns1/a', '10.0.0.1', { app: 'a' }), make.pod('ns1/b', '10.0.0.2', { app: 'b' }))
  const put = (spec: Record<string, unknown>) => mesh.touched(() => mesh.apply(make.policy('ns1/p', spec)))
  assert.deepEqual(put({ ...selects('a'), rules: [{}] }), [pod, 'policy ns1/p'])
  assert.deepEqual(put({ ...selects('a') }), ['policy ns1/p'])
  assert.deepEqual(put({ ...selects('b') }), [pod, 'c1//Pod/ns1/b'])
  assert.deepEqual(put({}), ['c1//Pod/ns1/b', 'policy ns1/p'])
  assert.deepEqual(put({ ...selects('a') }), [pod, 'policy ns1/p'])
  assert.deepEqual(put({ ...selects('a'), action: 'AUDIT' }), ['-policy ns1/p', pod])
  assert.deepEqual(put({ ...selects('a'), action: 'DENY' }), [pod, 'policy ns1/p'])
  assert.deepEqual(put({ targetRefs: [{ kind: 'Service', group: '', name: 'svc' }] }), ['-policy ns1/p', pod])
  assert.deepEqual(
    mesh.touched(() => mesh.apply(make.pod('ns1/a', '10.0.0.1', { app: 'c' }))),
    [pod],
  )
})

test('the root namespace is the one of mesh config', () => {
  const mesh = createTestMesh()
  mesh.apply(
    make.pod('ns1/a', '10.0.0.1', { app: 'a' }),
    make.policy('root/p', selects('a')),
    make.policy('root/q', {}),
    peer('root/m', 'STRICT'),
    peer('istio-system/n', 'PERMISSIVE'),
  )
  assert.deepEqual([listed(mesh), sent(mesh)], [[], [strictKey, 'root/p', 'root/q']])
  mesh.inputs.meshConfig.set({ rootNamespace: 'root' })
  const strict = 'root/istio_converted_static_strict'
  assert.deepEqual(
    [listed(mesh), sent(mesh)],
    [
      ['root/p', strict],
      [strict, 'root/p', 'root/q'],
    ],
  )
  assert.deepEqual(policyOf(mesh, 'root/q'), { name: 'q', namespace: 'root' })
})

test('dry-run policies are sent where they are allowed to, as such', () => {
  const dry = { ...make.policy('ns1/p', { rules: [{}] }) }
  const policy = { ...dry, metadata: { ...dry.metadata, annotations: { 'istio.io/dry-run': 'true' } } }
  const off = createTestMesh()
  off.apply(policy)
  assert.deepEqual(sent(off), [])
  assert.deepEqual(conditionsOf(off, 'AuthorizationPolicy/ns1/p'), [
    'ZtunnelAccepted False UnsupportedValue: found policy "ns1/p" using dry-run annotation, but support for ambient dry-run authorizationPolicies isn\'t enabled',
  ])
  const on = createTestMesh({ dryRunPolicies: true })
  on.apply(policy)
  assert.deepEqual(policyOf(on, 'ns1/p'), {
    name: 'p',
    namespace: 'ns1',
    scope: 'NAMESPACE',
    groups: [{}],
    dryRun: true,
  })
})

test('a policy has the condition of what it targets, and only that one', () => {
  const mesh = createTestMesh()
  const put = (spec: object): string[] => {
    mesh.apply(make.policy('ns1/p', { ...spec }))
    return conditionsOf(mesh, 'AuthorizationPolicy/ns1/p')
  }
  const target = (kind: string, name: string, group = '') => ({ kind, name, group })
  const svc = target('Service', 'svc')
  assert.deepEqual(put({}), ['ZtunnelAccepted True Accepted: attached to ztunnel'])
  assert.deepEqual(put({ targetRef: svc }), ['WaypointAccepted False TargetNotFound: Service ns1/svc was not found'])
  mesh.apply(make.service('ns1/svc', '10.1.0.1', {}, { labels: { 'istio.io/use-waypoint': 'wp' } }))
  assert.deepEqual(put({ targetRefs: [svc] }), [
    'WaypointAccepted False AncestorNotBound: Service ns1/svc is not bound to a waypoint',
  ])
  const gateway = target('Gateway', 'wp', 'gateway.networking.k8s.io')
  assert.deepEqual(put({ targetRefs: [gateway] }), ['WaypointAccepted False TargetNotFound: not bound'])
  assert.deepEqual(put({ targetRefs: [svc, gateway] }), [
    'WaypointAccepted False Invalid: Invalid targetRefs: Service.core:ns1/svc, Gateway.gateway.networking.k8s.io:ns1/wp',
  ])
  mesh.apply(make.waypoint('ns1/wp'))
  assert.deepEqual(conditionsOf(mesh, 'AuthorizationPolicy/ns1/p'), ['WaypointAccepted True Accepted: '])
  const entry = target('ServiceEntry', 'se', 'networking.istio.io')
  assert.deepEqual(put({ targetRefs: [svc, entry, gateway] }), [
    'WaypointAccepted True PartiallyInvalid: Invalid targetRefs: ServiceEntry.networking.istio.io:ns1/se',
  ])
  mesh.apply(make.serviceEntry('ns1/se', { hosts: ['x.com'] }, { labels: { 'istio.io/use-waypoint': 'wp' } }))
  assert.deepEqual(put({ targetRef: entry }), ['WaypointAccepted True Accepted: bound to ns1/wp'])
  mesh.remove('Gateway/ns1/wp')
  assert.deepEqual(conditionsOf(mesh, 'AuthorizationPolicy/ns1/p'), [
    'WaypointAccepted False AncestorNotBound: ServiceEntry ns1/se is not bound to a waypoint',
  ])
  const ofClass = target('GatewayClass', 'istio-waypoint', 'gateway.networking.k8s.io')
  assert.deepEqual(put({ targetRefs: [ofClass] }), [
    'WaypointAccepted False Invalid: AuthorizationPolicy must be in the root namespace `istio-system` when referencing a GatewayClass',
  ])
  const inRoot = () => conditionsOf(mesh, 'AuthorizationPolicy/istio-system/p')
  mesh.apply(make.policy('istio-system/p', { targetRefs: [ofClass] }))
  assert.deepEqual(inRoot(), ['WaypointAccepted False TargetNotFound: not bound'])
  mesh.apply(make.gatewayClass('istio-waypoint'))
  assert.deepEqual(inRoot(), ['WaypointAccepted True Accepted: bound to istio-waypoint'])
  mesh.apply({ ...make.gatewayClass('istio-waypoint'), ...{ spec: { controllerName: 'x/y' } } })
  assert.deepEqual(inRoot(), [
    'WaypointAccepted False Invalid: GatewayClass must use controller name `istio.io/mesh-controller` for waypoints',
  ])
  assert.deepEqual(put({ action: 'CUSTOM' }), [
    'ZtunnelAccepted False UnsupportedValue: ztunnel does not support the CUSTOM action',
  ])
  assert.deepEqual(sent(mesh), [])
})

test('what a workload lists for PeerAuthentications, from the mesh down to its port', () => {
  const converted = 'ns1/converted_peer_authentication_w'
  const ports = (of: Record<string, string>) => ({
    portLevelMtls: Object.fromEntries(Object.entries(of).map(([port, mode]) => [port, { mode }])),
  })
  const cases: [name: string, peers: KubeObject[], listed: string[]][] = [
    ['nothing', [], []],
    ['mesh', [peer('istio-system/m', 'STRICT')], [strictKey]],
    ['mesh permissive', [peer('istio-system/m', 'PERMISSIVE')], []],
    ['namespace over mesh', [peer('istio-system/m', 'STRICT'), peer('ns1/n', 'DISABLE')], []],
    ['unset namespace', [peer('istio-system/m', 'STRICT'), peer('ns1/n', undefined)], [strictKey]],
    ['other namespace', [peer('ns2/n', 'STRICT')], []],
    ['workload over namespace', [peer('ns1/n', 'STRICT'), peer('ns1/w', 'PERMISSIVE', selects('a'))], []],
    ['workload', [peer('ns1/w', 'STRICT', selects('a'))], [strictKey]],
    ['other workload', [peer('ns1/w', 'STRICT', selects('b'))], []],
    ['empty selector', [peer('ns1/w', 'STRICT', { selector: {} })], [strictKey]],
    ['selector in the root namespace', [peer('istio-system/w', 'STRICT', selects('a'))], []],
    ['ports without selector', [peer('ns1/n', 'PERMISSIVE', ports({ 80: 'STRICT' }))], []],
    ['strict port', [peer('ns1/w', undefined, { ...selects('a'), ...ports({ 80: 'STRICT' }) })], [converted]],
    [
      'strict port under strict mesh',
      [peer('istio-system/m', 'STRICT'), peer('ns1/w', undefined, { ...selects('a'), ...ports({ 80: 'STRICT' }) })],
      [strictKey],
    ],
    [
      'exempt port under strict mesh',
      [peer('istio-system/m', 'STRICT'), peer('ns1/w', undefined, { ...selects('a'), ...ports({ 80: 'DISABLE' }) })],
      [converted],
    ],
    ['unset port', [peer('ns1/w', 'STRICT', { ...selects('a'), ...ports({ 80: 'UNSET' }) })], [strictKey]],
    ['exempt port, permissive', [peer('ns1/w', 'DISABLE', { ...selects('a'), ...ports({ 80: 'PERMISSIVE' }) })], []],
  ]
  for (const [name, peers, expected] of cases) {
    const mesh = createTestMesh()
    mesh.apply(make.pod('ns1/a', '10.0.0.1', { app: 'a' }), ...peers)
    assert.deepEqual(listed(mesh), expected, name)
    assert.equal(sent(mesh).includes(strictKey), peers.length > 0, name)
  }
})

test('ports of a PeerAuthentication become rules against those without identity', () => {
  const mesh = createTestMesh()
  const portLevelMtls = {
    9001: { mode: 'STRICT' },
    80: { mode: 'STRICT' },
    9: { mode: 'DISABLE' },
    7: { mode: 'UNSET' },
  }
  mesh.apply(peer('ns1/w', 'PERMISSIVE', { ...selects('a'), portLevelMtls }))
  const name = 'ns1/converted_peer_authentication_w'
  const head = {
    name: 'converted_peer_authentication_w',
    namespace: 'ns1',
    scope: 'WORKLOAD_SELECTOR',
    action: 'DENY',
  }
  assert.deepEqual(policyOf(mesh, name), {
    ...head,
    groups: [80, 9001].map((port) => ({ rules: [{ matches: [{ ...noIdentity, destinationPorts: [port] }] }] })),
  })
  mesh.apply(
    peer('ns1/n', 'STRICT'),
    peer('ns1/w', undefined, { ...selects('a'), portLevelMtls: { ...portLevelMtls, 8: { mode: 'PERMISSIVE' } } }),
  )
  assert.deepEqual(policyOf(mesh, name), {
    ...head,
    groups: [
      { rules: [{ matches: [noIdentity] }, ...[8, 9].map((port) => ({ matches: [{ notDestinationPorts: [port] }] }))] },
    ],
  })
  assert.deepEqual(policyOf(mesh, strictKey), {
    name: 'istio_converted_static_strict',
    namespace: 'istio-system',
    scope: 'WORKLOAD_SELECTOR',
    action: 'DENY',
    groups: [{ rules: [{ matches: [noIdentity] }] }],
  })
  mesh.remove('PeerAuthentication/ns1/w')
  assert.deepEqual(sent(mesh), [strictKey])
  mesh.remove('PeerAuthentication/ns1/n')
  assert.deepEqual(sent(mesh), [])
})

test('of several PeerAuthentications for one thing the oldest counts, even where it says nothing', () => {
  const at = (day: number) => ({ creationTimestamp: `2026-01-0${day}T00:00:00Z` })
  const mesh = createTestMesh()
  mesh.apply(
    make.pod('ns1/a', '10.0.0.1', { app: 'a' }),
    peer('ns1/late', 'STRICT', {}, at(2)),
    peer('ns1/early', undefined, {}, at(1)),
    peer('ns1/w2', 'STRICT', selects('a'), at(4)),
    peer('ns1/w1', 'UNSET', selects('a'), at(3)),
  )
  assert.deepEqual(listed(mesh), [])
  mesh.remove('PeerAuthentication/ns1/w1')
  assert.deepEqual(listed(mesh), [strictKey])
  mesh.remove('PeerAuthentication/ns1/w2')
  assert.deepEqual(listed(mesh), [])
  mesh.remove('PeerAuthentication/ns1/early')
  assert.deepEqual(listed(mesh), [strictKey])
  mesh.apply(peer('ns1/a-same-age', 'DISABLE', {}, at(2)))
  assert.deepEqual(listed(mesh), [])
})

test('policies also reach entries, by their labels, and endpoints, by those of their ServiceEntry', () => {
  const mesh = createTestMesh()
  mesh.apply(
    make.policy('ns1/p', selects('a')),
    peer('istio-system/m', 'STRICT'),
    make.workloadEntry('ns1/vm', { address: '10.2.0.1', labels: { app: 'a' } }),
    make.serviceEntry(
      'ns1/se',
      { hosts: ['x.com'], endpoints: [{ address: '10.4.0.1', labels: { app: 'b' } }] },
      { labels: { app: 'a' } },
    ),
    make.service('ns1/svc', '10.1.0.1'),
    make.slice('ns1/s', 'svc', [{ addresses: ['10.5.0.1'] }]),
  )
  const both = ['ns1/p', strictKey]
  assert.deepEqual(listed(mesh, 'c1/networking.istio.io/WorkloadEntry/ns1/vm'), both)
  assert.deepEqual(listed(mesh, 'c1/networking.istio.io/ServiceEntry/ns1/se/10.4.0.1'), both)
  assert.deepEqual(listed(mesh, 'c1/discovery.k8s.io/EndpointSlice/ns1/s/10.5.0.1'), [])
})

test('workloads let in the waypoints before them, canaries included', () => {
  const instance = (name: string, gateway: string, account: string) =>
    make.pod(
      `ns1/${name}`,
      '10.0.0.9',
      { 'gateway.networking.k8s.io/gateway-name': gateway },
      {},
      { serviceAccountName: account },
    )
  const labels = { 'istio.io/use-waypoint': 'wp', 'istio.io/use-waypoint-canary': 'next' }
  const objects = [
    make.waypoint('ns1/wp'),
    make.waypoint('ns1/next'),
    make.waypoint('ns1/own', { for: 'workload' }),
    instance('w2', 'wp', 'wp-b'),
    instance('w1', 'wp', 'wp-a'),
    instance('w3', 'wp', 'wp-a'),
    instance('n1', 'next', 'next'),
    make.service('ns1/svc', '10.1.0.1', { app: 'a' }, { labels }),
    make.pod('ns1/a', '10.0.0.1', { app: 'a', 'istio.io/use-waypoint': 'own' }),
    make.policy('ns1/p', selects('a')),
  ]
  const off = createTestMesh()
  off.apply(...objects)
  assert.deepEqual(listed(off), ['ns1/p'])
  const mesh = createTestMesh({ autoAllowWaypoints: true })
  mesh.inputs.meshConfig.set({ trustDomain: 'mesh.example' })
  mesh.apply(...objects)
  const [wp, next, own] = ['wp', 'next', 'own'].map((name) => `ns1/istio_allow_waypoint_ns1_${name}`)
  assert.deepEqual(listed(mesh), ['ns1/p', wp, next])
  mesh.apply(instance('o1', 'own', 'own'))
  assert.deepEqual(listed(mesh), ['ns1/p', wp, next, own])
  assert.deepEqual(policyOf(mesh, wp ?? ''), {
    name: 'istio_allow_waypoint_ns1_wp',
    namespace: 'ns1',
    scope: 'WORKLOAD_SELECTOR',
    groups: [
      {
        rules: [
          {
            matches: [
              {
                principals: [{ exact: 'mesh.example/ns/ns1/sa/wp-a' }, { exact: 'mesh.example/ns/ns1/sa/wp-b' }],
              },
            ],
          },
        ],
      },
    ],
  })
  mesh.remove('Gateway/ns1/next')
  assert.deepEqual(listed(mesh), ['ns1/p', wp, own])
})
