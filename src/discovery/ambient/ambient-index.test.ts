import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { workload } from '../../proto/index.ts'
import { createTestMesh, make, servedNames, type TestMesh } from './testing.ts'

function workloadOf({ index }: TestMesh, name: string): workload.Workload {
  const resource = index.workloads.get(name)
  assert.ok(resource, `workload ${name}`)
  return fromBinary(workload.WorkloadSchema, resource.body)
}

const selector = (app: string) => ({ selector: { matchLabels: { app } } })

test('a change touches exactly what can differ', () => {
  const mesh = createTestMesh()
  const { apply, remove, touched } = mesh
  apply(
    make.namespace('ns1'),
    make.node('node', { 'topology.kubernetes.io/zone': 'z1' }),
    make.pod('ns1/a1', '10.0.0.1', { app: 'a' }),
    make.pod('ns1/a2', '10.0.0.2', { app: 'a' }),
    make.pod('ns1/b1', '10.0.0.3', { app: 'b' }),
    make.pod('ns2/a1', '10.0.0.4', { app: 'a' }),
  )
  const [a1, a2, b1] = ['c1//Pod/ns1/a1', 'c1//Pod/ns1/a2', 'c1//Pod/ns1/b1']
  const svc = 'ns1/svc.ns1.svc.cluster.local'

  assert.deepEqual(
    touched(() => apply(make.service('ns1/svc', '10.1.0.1', { app: 'a' }))),
    [a1, a2, svc].sort(),
  )
  assert.deepEqual(
    touched(() => apply(make.service('ns1/svc', '10.1.0.1', { app: 'b' }))),
    [a1, a2, b1].sort(),
  )
  assert.deepEqual(
    touched(() => apply(make.service('ns1/svc', '10.1.0.1', { app: 'b' }, { resourceVersion: '7' }))),
    [],
  )
  assert.deepEqual(
    touched(() => apply(make.node('node', { 'topology.kubernetes.io/zone': 'z1' }, { resourceVersion: '9' }))),
    [],
  )
  assert.deepEqual(
    touched(() =>
      apply(
        make.pod('ns1/b1', '10.0.0.3', { app: 'b' }, { annotations: { 'ambient.istio.io/redirection': 'enabled' } }),
      ),
    ),
    [b1],
  )
  assert.deepEqual(
    touched(() => apply(make.policy('ns1/p', { ...selector('a'), rules: [{}] }))),
    [a1, a2, 'policy ns1/p'],
  )
  assert.deepEqual(
    touched(() => apply(make.policy('ns1/p', { ...selector('a'), rules: [] }))),
    ['policy ns1/p'],
  )
  assert.deepEqual(
    touched(() => apply(make.policy('ns1/p', { ...selector('b'), rules: [] }))),
    [a1, a2, b1],
  )
  assert.deepEqual(
    touched(() => remove('AuthorizationPolicy/ns1/p')),
    ['-policy ns1/p', b1],
  )
  assert.deepEqual(
    touched(() => apply(make.policy('ns1/all', { rules: [{}] }))),
    ['policy ns1/all'],
  )
  assert.deepEqual(
    touched(() => remove('Pod/ns1/b1')),
    [`-${b1}`],
  )
  assert.deepEqual(mesh.reports, [])
})

test('a service that goes through another waypoint is told alone, however many members it has', () => {
  const { apply, touched } = createTestMesh()
  const through = (waypoint: string) =>
    make.service('ns1/svc', '10.1.0.1', { app: 'a' }, { labels: { 'istio.io/use-waypoint': waypoint } })
  const pods = Array.from({ length: 50 }, (_, at) => make.pod(`ns1/p${at}`, `10.0.0.${at}`, { app: 'a' }))
  const waypoint = (name: string) =>
    make.gateway(`ns1/${name}`, {}, {}, [{ type: 'Hostname', value: `${name}.example.com` }])
  apply(waypoint('one'), waypoint('two'), through('one'), ...pods)
  assert.deepEqual(
    touched(() => apply(through('two'))),
    ['ns1/svc.ns1.svc.cluster.local'],
  )
})

test('a waypoint without address changes nothing; once it has one, all that is bound changes in one wave', () => {
  const { apply, touched, index } = createTestMesh()
  const labels = { 'istio.io/use-waypoint': 'wp' }
  apply(make.namespace('ns1', labels), make.service('ns1/one', '10.1.0.1'), make.service('ns1/two', '10.1.0.2'))
  apply(make.service('ns1/none', '10.1.0.3', {}, { labels: { 'istio.io/use-waypoint': 'none' } }))
  assert.deepEqual(
    touched(() => apply(make.waypoint('ns1/wp', { ready: false }))),
    [],
  )
  let waves = 0
  index.addresses.subscribe(() => {
    waves += 1
  })
  waves = 0
  const bound = ['ns1/one.ns1.svc.cluster.local', 'ns1/two.ns1.svc.cluster.local']
  assert.deepEqual(
    touched(() => apply(make.waypoint('ns1/wp'))),
    bound,
  )
  assert.equal(waves, 1)
  assert.deepEqual(
    touched(() => apply(make.namespace('ns1'))),
    bound,
  )
})

test('replicas that read the same objects in another order serve equal bytes', () => {
  const objects = [
    make.namespace('ns1', { 'istio.io/use-waypoint': 'wp' }),
    make.waypoint('ns1/wp', { for: 'all' }),
    make.pod('ns1/a', '10.0.0.1', { app: 'a' }),
    make.service('ns1/s1', '10.1.0.1', { app: 'a' }),
    make.service('ns1/s2', '10.1.0.2', { app: 'a' }),
    make.serviceEntry('ns1/e1', {
      hosts: ['x.com'],
      addresses: ['10.2.0.1'],
      workloadSelector: { labels: { app: 'a' } },
    }),
    make.serviceEntry('ns1/e2', { hosts: ['x.com'], addresses: ['10.2.0.2'] }),
    make.policy('ns1/p2', { ...selector('a'), rules: [{}] }),
    make.policy('istio-system/p1', { ...selector('a'), rules: [{}] }),
    make.peer('ns1/strict', { mtls: { mode: 'STRICT' } }),
    make.workloadEntry('ns1/vm', { address: '10.3.0.1', labels: { app: 'a' } }),
  ]
  const versions = (mesh: TestMesh): string[] =>
    [...mesh.index.addresses.list(), ...mesh.index.authorizations.list()].map(
      ({ name, version }) => `${name} ${version}`,
    )
  const [first, second] = [createTestMesh(), createTestMesh()]
  first.apply(...objects)
  for (const one of objects.toReversed()) second.apply(one)
  assert.deepEqual(versions(first).sort(), versions(second).sort())
})

test('a broken object harms no other', () => {
  const mesh = createTestMesh()
  mesh.apply(make.pod('ns1/good', '10.0.0.1', { app: 'a' }), make.service('ns1/svc', '10.1.0.1', { app: 'a' }))
  const before = mesh.index.addresses.get('c1//Pod/ns1/good')?.version
  mesh.apply(
    make.pod('ns1/bad', '10.0.0.2', { app: 'a' }, {}, { containers: 'none' }),
    make.serviceEntry('ns1/bad', { hosts: [7, null], addresses: 'all' }),
    make.serviceEntry('ns1/unreadable', { hosts: ['y.com'], addresses: ['10.0.0.1', 'nonsense'] }),
    make.workloadEntry('ns1/bad', { address: '10.0.0.3', locality: 7 }),
    make.policy('ns1/bad', { rules: 'none' }),
    { ...make.service('ns1/bad', '10.1.0.2'), spec: { ports: 'many', selector: { app: 'a' } } },
    { ...make.peer('ns1/bad', {}), spec: null },
    { ...make.waypoint('ns1/bad'), status: { addresses: 'here' } },
  )
  assert.equal(mesh.index.addresses.get('c1//Pod/ns1/good')?.version, before)
  assert.equal(mesh.index.addresses.get('ns1/y.com'), undefined)
  mesh.apply(make.pod('ns1/late', '10.0.0.9', { app: 'a' }))
  assert.deepEqual(Object.keys(workloadOf(mesh, 'c1//Pod/ns1/late').services), ['ns1/svc.ns1.svc.cluster.local'])
})

test('a workload never lists a policy that is not sent', () => {
  const mesh = createTestMesh()
  mesh.apply(
    make.pod('ns1/a', '10.0.0.1', { app: 'a' }),
    make.policy('ns1/custom', { ...selector('a'), action: 'CUSTOM' }),
    make.policy('ns1/target', { ...selector('a'), targetRefs: [{ kind: 'Service', name: 's' }] }),
    make.peer('ns1/ports', { ...selector('a'), portLevelMtls: { 9000: { mode: 'STRICT' } } }),
    make.peer('istio-system/mesh', { mtls: { mode: 'STRICT' } }),
  )
  for (const key of workloadOf(mesh, 'c1//Pod/ns1/a').authorizationPolicies) {
    assert.ok(mesh.index.authorizations.get(key), key)
  }
  assert.deepEqual(workloadOf(mesh, 'c1//Pod/ns1/a').authorizationPolicies, [
    'istio-system/istio_converted_static_strict',
  ])
})

test('an address moves with its pod in one wave', () => {
  const { apply, graph, remove, touched, index } = createTestMesh()
  apply(make.pod('ns1/old', '10.0.0.1'))
  assert.deepEqual(
    touched(() =>
      graph.transaction(() => {
        remove('Pod/ns1/old')
        apply(make.pod('ns1/new', '10.0.0.1'))
      }),
    ),
    ['-c1//Pod/ns1/old', 'c1//Pod/ns1/new'],
  )
  assert.deepEqual(
    index.addresses.lookup?.('/10.0.0.1').map(({ name }) => name),
    ['c1//Pod/ns1/new'],
  )
})

test('lookup: a workload by name or address, a service with its workloads, of services with one address the canonical', () => {
  const { apply, index } = createTestMesh()
  apply(
    make.pod('ns1/a', '10.0.0.1', { app: 'a' }),
    make.pod('ns1/host', '10.0.0.1', {}, {}, { hostNetwork: true }),
    make.service('ns1/svc', '10.1.0.1', { app: 'a' }),
    make.serviceEntry('ns0/e', { hosts: ['svc.ns1.svc.cluster.local'], addresses: ['10.1.0.1'] }),
    make.serviceEntry('ns1/net', { hosts: ['net.com'], addresses: ['10.9.0.0/16'] }),
  )
  const lookup = (key: string) => index.addresses.lookup?.(key).map(({ name }) => name)
  assert.deepEqual(lookup('c1//Pod/ns1/a'), ['c1//Pod/ns1/a'])
  assert.deepEqual(lookup('/10.0.0.1'), ['c1//Pod/ns1/a', 'c1//Pod/ns1/host'])
  assert.deepEqual(lookup('/10.1.0.1'), ['ns1/svc.ns1.svc.cluster.local', 'c1//Pod/ns1/a'])
  assert.deepEqual(lookup('/10.9.0.0/16'), ['ns1/net.com'])
  assert.deepEqual(lookup('/10.9.0.1'), [])
  assert.deepEqual(lookup('10.0.0.1'), [])
})

test('a change tells the keys and nodes it concerns, before and after', () => {
  const { apply, index } = createTestMesh()
  apply(make.service('ns1/svc', '10.1.0.1', { app: 'a' }), make.pod('ns1/a', '10.0.0.1', { app: 'a' }))
  let keys: readonly string[] = []
  let nodes: readonly string[] = []
  index.addresses.subscribe((changes) => {
    keys = changes.flatMap((change) => change.reach?.().keys ?? [])
    nodes = changes.flatMap((change) => change.reach?.().nodes ?? [])
  })
  apply(make.pod('ns1/a', '10.0.0.2', {}, {}, { nodeName: 'other' }))
  assert.deepEqual([...keys].sort(), ['/10.0.0.1', '/10.0.0.2', 'c1//Pod/ns1/a', 'ns1/svc.ns1.svc.cluster.local'])
  assert.deepEqual([...nodes].sort(), ['node', 'other'])
})

test('objects of other revisions, and of namespaces that are not discovered, do not count', () => {
  const mesh = createTestMesh({ revision: 'blue' })
  const strict = { mtls: { mode: 'STRICT' } }
  mesh.apply(make.namespace('ns1', { mesh: 'yes' }), make.namespace('ns2'), make.namespace('istio-system'))
  mesh.apply(make.pod('ns1/a', '10.0.0.1'), make.pod('ns2/a', '10.0.0.2'))
  const other = make.peer('ns1/other', strict)
  mesh.apply({ ...other, metadata: { ...other.metadata, labels: { 'istio.io/rev': 'green' } } })
  assert.deepEqual([...mesh.index.authorizations.list()], [])
  mesh.inputs.meshConfig.set({ discoverySelectors: [{ matchLabels: { mesh: 'yes' } }] })
  assert.deepEqual(
    [...mesh.index.addresses.list()].map(({ name }) => name),
    ['c1//Pod/ns1/a'],
  )
  mesh.apply(make.peer('istio-system/mesh', strict))
  assert.deepEqual(workloadOf(mesh, 'c1//Pod/ns1/a').authorizationPolicies, [
    'istio-system/istio_converted_static_strict',
  ])
})

test('mesh config with a selector that cannot be evaluated leaves the last valid one in force', () => {
  const mesh = createTestMesh()
  const none = { serviceEntryVisibility: { defaultVisibility: 'NONE' } }
  mesh.inputs.meshConfig.set(none)
  mesh.apply(make.serviceEntry('ns1/e', { hosts: ['x.com'], addresses: ['10.2.0.1'] }))
  assert.equal(mesh.index.addresses.get('ns1/x.com'), undefined)
  const namespaceSelector = { matchExpressions: [{ key: 'a', operator: 'Like' }] }
  mesh.inputs.meshConfig.set({ serviceEntryVisibility: { policies: [{ matchingRules: [{ namespaceSelector }] }] } })
  assert.equal(mesh.index.addresses.get('ns1/x.com'), undefined)
  assert.equal(mesh.reports[0]?.kind, 'derivation-failed')
  mesh.inputs.meshConfig.set({})
  assert.ok(mesh.index.addresses.get('ns1/x.com'))
})

test('a cluster that goes takes everything with it: pods, merged addresses, identities, gateways', () => {
  const mesh = createTestMesh({ multiNetwork: true })
  const { inputs, index } = mesh
  inputs.meshConfig.set({ serviceScopeConfigs: [{ scope: 'GLOBAL' }] })
  mesh.apply(make.namespace('istio-system', { 'topology.istio.io/network': 'n1' }))
  mesh.apply(make.pod('ns1/a', '10.0.0.1', { app: 'a' }), make.service('ns1/svc', '10.1.0.1', { app: 'a' }))
  const content = (): string[] => [...index.addresses.list()].map(({ name, version }) => `${name} ${version}`).sort()
  const before = content()
  const far = 'n2/SplitHorizonWorkload/istio-system/ew/192.0.2.7/ns1/svc.ns1.svc.cluster.local'
  const join = (): void =>
    mesh.graph.transaction(() => {
      const gateway = make.waypoint('istio-system/ew')
      inputs
        .feed('c2', 'namespaces')
        .set(make.namespace('istio-system', { 'topology.istio.io/network': 'n2' }) as never)
      inputs.feed('c2', 'services').set(make.service('ns1/svc', '10.1.0.2', { app: 'a' }) as never)
      inputs.feed('c2', 'pods').set(make.pod('ns1/b', '10.0.0.2', { app: 'a' }) as never)
      inputs.feed('c2', 'pods').set(make.pod('ns1/c', '10.0.0.3', { app: 'a' }, { deletionTimestamp: 'now' }) as never)
      inputs.feed('c2', 'gateways').set({
        ...gateway,
        metadata: { ...gateway.metadata, labels: { 'topology.istio.io/network': 'n2' } },
        spec: {
          gatewayClassName: 'istio-east-west',
          listeners: [{ name: 'mesh', port: 15008, protocol: 'HBONE', tls: { mode: 'Terminate' } }],
        },
        status: { addresses: [{ type: 'IPAddress', value: '192.0.2.7' }] },
      } as never)
    })
  join()
  assert.deepEqual([...index.addresses.list()].map(({ name }) => name).sort(), [
    'NetworkGateway/n2/192.0.2.7/0',
    'c1//Pod/ns1/a',
    far,
    'ns1/svc.ns1.svc.cluster.local',
  ])
  assert.equal(workloadOf(mesh, far).capacity, 1)
  assert.deepEqual(index.addresses.get('ns1/svc.ns1.svc.cluster.local')?.aliases, ['n1/10.1.0.1', 'n2/10.1.0.2'])
  inputs.removeCluster('c2')
  assert.deepEqual(content(), before)
  join()
  assert.notDeepEqual(content(), before)
})

test('a cluster that goes takes along what was read of it in the same wave', () => {
  const mesh = createTestMesh({ multiNetwork: true })
  mesh.graph.transaction(() => {
    mesh.inputs.feed('c2', 'pods').set(make.pod('ns1/a', '10.0.0.1') as never)
    mesh.inputs.feed('c2/x', 'pods').set(make.pod('ns1/a', '10.0.0.2') as never)
    mesh.inputs.removeCluster('c2')
  })
  assert.deepEqual(servedNames(mesh), ['c2/x//Pod/ns1/a'])
  mesh.graph.transaction(() => {
    const feed = mesh.inputs.feed('c2', 'pods')
    feed.set(make.pod('ns1/a', '10.0.0.1') as never)
    feed.replace([make.pod('ns1/b', '10.0.0.3') as never])
  })
  assert.deepEqual(servedNames(mesh), ['c2//Pod/ns1/b', 'c2/x//Pod/ns1/a'])
})

test('an object of a namespace that is not known is not discovered where selectors are set', () => {
  const mesh = createTestMesh()
  const excluded = { matchExpressions: [{ key: 'mesh', operator: 'DoesNotExist' }] }
  mesh.inputs.meshConfig.set({ discoverySelectors: [excluded] })
  mesh.apply(make.namespace('ns1', { mesh: 'no' }), make.namespace('ns2'))
  mesh.apply(make.pod('ns1/a', '10.0.0.1'), make.pod('ns2/a', '10.0.0.2'), make.pod('istio-system/a', '10.0.0.3'))
  const known = ['c1//Pod/istio-system/a', 'c1//Pod/ns2/a']
  assert.deepEqual(servedNames(mesh), known)
  mesh.remove('Namespace//ns1')
  assert.deepEqual(servedNames(mesh), known)
  mesh.apply(make.namespace('ns1'))
  assert.deepEqual(servedNames(mesh), ['c1//Pod/istio-system/a', 'c1//Pod/ns1/a', 'c1//Pod/ns2/a'])
})

test('the index is synced once its inputs are', async () => {
  const mesh = createTestMesh()
  assert.equal(mesh.index.synced, true)
  assert.equal(mesh.index.addresses.synced, true)
  await mesh.index.whenSynced
})

test('a service that is merged with others of other ports is named, with their clusters', () => {
  const mesh = createTestMesh({ multiNetwork: true })
  mesh.inputs.meshConfig.set({ serviceScopeConfigs: [{ scope: 'GLOBAL' }] })
  mesh.apply(make.namespace('ns1'), make.service('ns1/svc', '10.96.0.1'))
  const far = make.service('ns1/svc', '10.97.0.1')
  const differing = () => [...mesh.index.differingPorts.entries()]
  mesh.inputs.feed('c2', 'services').set(far as never)
  assert.deepEqual(differing(), [])
  mesh.inputs.feed('c2', 'services').set({ ...far, spec: { clusterIP: '10.97.0.1', ports: [{ port: 81 }] } } as never)
  assert.deepEqual(differing(), [['ns1/svc.ns1.svc.cluster.local', ['c2']]])
})
