// Several clusters and networks: what is merged, what is sent one by one, and what stands for the rest.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '../../api/index.ts'
import { createTestMesh, inputsByKind, make, served, servedNames, type TestMesh } from './testing.ts'

const svc = 'ns1/svc.ns1.svc.cluster.local'
const system = (network: string) => make.namespace('istio-system', { 'topology.istio.io/network': network })
const global = { serviceScopeConfigs: [{ servicesSelector: { matchLabels: { global: 'yes' } }, scope: 'GLOBAL' }] }
const isGlobal = { labels: { global: 'yes' } }

function applyTo(mesh: TestMesh, cluster: string, ...objects: readonly KubeObject[]): void {
  mesh.graph.transaction(() => {
    for (const object of objects) {
      const kind = inputsByKind[object.kind]
      assert.ok(kind)
      mesh.inputs.feed(cluster, kind).set(object as never)
    }
  })
}

function twoNetworks(): TestMesh {
  const mesh = createTestMesh({ multiNetwork: true })
  mesh.inputs.meshConfig.set(global)
  mesh.apply(system('n1'), make.namespace('ns1'))
  applyTo(mesh, 'c2', system('n2'), make.namespace('ns1'))
  return mesh
}

const eastWest = (path: string, ...values: string[]) =>
  make.gateway(
    path,
    { labels: { 'topology.istio.io/network': 'n2' } },
    {
      gatewayClassName: 'istio-east-west',
      listeners: [{ name: 'l', port: 15008, protocol: 'HBONE', tls: { mode: 'Terminate' } }],
    },
    values.map((value) => ({ type: 'IPAddress', value })),
  )
const remote = (path: string, port: number, addresses: object[], metadata: object = {}) =>
  make.gateway(
    path,
    { labels: { 'topology.istio.io/network': 'n2' }, ...metadata },
    {
      gatewayClassName: 'istio-remote',
      listeners: [
        { name: 'tls', port: 15443, protocol: 'TLS' },
        { name: 'l', port, protocol: 'HBONE' },
        { name: 'second', port: 1, protocol: 'HBONE' },
      ],
    },
    addresses as never,
  )
const gatewayOf = (mesh: TestMesh, name: string): unknown => served(mesh, name)?.networkGateway

test('gateways of the config cluster lead to entries of other networks: the first by name and address', () => {
  const mesh = createTestMesh()
  const vm = 'c1/networking.istio.io/WorkloadEntry/ns1/vm'
  mesh.apply(
    system('n1'),
    make.workloadEntry('ns1/vm', { address: '10.2.0.1', network: 'n2' }),
    make.workloadEntry('ns1/near', { address: '10.2.0.2' }),
    make.serviceEntry('ns1/se', {
      hosts: ['x.com'],
      endpoints: [{ address: '10.4.0.1', network: 'n2' }, { address: '10.4.0.2' }],
    }),
  )
  assert.equal(gatewayOf(mesh, vm), undefined)
  mesh.apply(remote('istio-system/b', 15009, [{ type: 'Hostname', value: 'gw.example.com' }]))
  const byHost = { hostname: { namespace: 'istio-system', hostname: 'gw.example.com' }, hboneMtlsPort: 15009 }
  assert.deepEqual(gatewayOf(mesh, vm), byHost)
  assert.deepEqual(gatewayOf(mesh, 'c1/networking.istio.io/ServiceEntry/ns1/se/10.4.0.1'), byHost)
  assert.equal(gatewayOf(mesh, 'c1/networking.istio.io/ServiceEntry/ns1/se/10.4.0.2'), undefined)
  assert.equal(gatewayOf(mesh, 'c1/networking.istio.io/WorkloadEntry/ns1/near'), undefined)
  mesh.apply(
    remote(
      'istio-system/a',
      15008,
      [{ type: 'IPAddress', value: '192.0.2.8' }, { value: '192.0.2.7' }, { type: 'NamedAddress', value: 'x' }],
      { annotations: { 'gateway.istio.io/service-account': 'gw' } },
    ),
  )
  assert.deepEqual(gatewayOf(mesh, vm), { address: { network: 'n2', address: '192.0.2.7' }, hboneMtlsPort: 15008 })
  const names = servedNames(mesh).filter((name) => name.startsWith('NetworkGateway/'))
  assert.deepEqual(names, [
    'NetworkGateway/n2/192.0.2.7/15008',
    'NetworkGateway/n2/192.0.2.8/15008',
    'NetworkGateway/n2/gw.example.com/15009',
  ])
  assert.deepEqual(served(mesh, names[0] ?? ''), {
    uid: names[0],
    name: names[0],
    namespace: 'istio-system',
    addresses: ['192.0.2.7'],
    network: 'n2',
    serviceAccount: 'gw',
  })
  assert.equal(served(mesh, names[2] ?? '')?.serviceAccount, 'b-istio-remote')
  assert.equal(served(mesh, names[2] ?? '')?.hostname, 'gw.example.com')
  mesh.remove('Gateway/istio-system/a', 'Gateway/istio-system/b')
  assert.equal(gatewayOf(mesh, vm), undefined)
})

test('the same Gateway seen from several clusters counts once, the config cluster’s first; another one beside it is its own', () => {
  const mesh = twoNetworks()
  const far = make.pod('ns1/far', '10.0.0.2', { app: 'a' })
  mesh.apply(
    remote('istio-system/gw', 15008, [{ value: '192.0.2.7' }]),
    make.workloadEntry('ns1/vm', { address: '10.2.0.1', network: 'n2' }),
  )
  mesh.apply(make.service('ns1/svc', '10.1.0.1', { app: 'a' }, isGlobal))
  applyTo(
    mesh,
    'c2',
    eastWest('istio-system/gw', '192.0.2.7'),
    far,
    make.service('ns1/svc', '10.1.0.2', { app: 'a' }, isGlobal),
  )
  const gateways = () => servedNames(mesh).filter((name) => /^NetworkGateway/.test(name))
  const split = () => servedNames(mesh).filter((name) => name.includes('SplitHorizonWorkload'))
  assert.deepEqual(gateways(), ['NetworkGateway/n2/192.0.2.7/15008'])
  assert.deepEqual(split(), [`n2/SplitHorizonWorkload/istio-system/gw/192.0.2.7/${svc}`])
  assert.equal(served(mesh, split()[0] ?? '')?.clusterId, 'c1')

  applyTo(mesh, 'c2', eastWest('istio-system/ew', '192.0.2.7'))
  assert.deepEqual(gateways(), ['NetworkGateway/n2/192.0.2.7/0', 'NetworkGateway/n2/192.0.2.7/15008'])
  assert.deepEqual(split(), [`n2/SplitHorizonWorkload/istio-system/ew/192.0.2.7/${svc}`])
  assert.equal(served(mesh, split()[0] ?? '')?.clusterId, 'c2')
  assert.deepEqual(mesh.reports, [])
  mesh.remove('Gateway/istio-system/gw')
  assert.deepEqual(gateways(), ['NetworkGateway/n2/192.0.2.7/0'])
})

test('two Gateways of one address and port are one workload', () => {
  const mesh = createTestMesh()
  mesh.apply(remote('ns2/b', 15008, [{ value: '192.0.2.7' }]), remote('ns1/a', 15008, [{ value: '192.0.2.7' }]))
  const uid = 'NetworkGateway/n2/192.0.2.7/15008'
  assert.equal(served(mesh, uid)?.namespace, 'ns1')
  assert.deepEqual(mesh.reports, [])
  assert.deepEqual(
    mesh.touched(() => mesh.remove('Gateway/ns1/a')),
    [uid],
  )
  assert.equal(served(mesh, uid)?.namespace, 'ns2')
})

test('what is missing for a Gateway to lead into a network', () => {
  const listener = { name: 'l', port: 15008, protocol: 'HBONE', tls: { mode: 'Terminate' } }
  const label = { labels: { 'topology.istio.io/network': 'n2' } }
  const gateway = (metadata: object, spec: object) =>
    make.gateway('istio-system/gw', { ...metadata }, { ...spec }, [{ value: '192.0.2.7' }])
  const cases: [cluster: string, metadata: object, spec: object, port: string | undefined][] = [
    ['c1', label, { gatewayClassName: 'istio-remote', listeners: [listener] }, '15008'],
    ['c1', label, { gatewayClassName: 'istio-east-west', listeners: [listener] }, undefined],
    ['c1', {}, { gatewayClassName: 'istio-remote', listeners: [listener] }, undefined],
    ['c1', label, { gatewayClassName: 'istio-remote', listeners: [{ ...listener, protocol: 'TLS' }] }, undefined],
    ['c1', label, { gatewayClassName: 'istio-remote', listeners: [{ ...listener, tls: undefined }] }, '15008'],
    ['c2', label, { gatewayClassName: 'istio-east-west', listeners: [listener] }, '0'],
    ['c2', label, { gatewayClassName: 'istio-remote', listeners: [listener] }, undefined],
    ['c2', label, { gatewayClassName: 'istio-east-west', listeners: [{ ...listener, tls: undefined }] }, undefined],
    [
      'c2',
      label,
      { gatewayClassName: 'istio-east-west', listeners: [{ ...listener, tls: { mode: 'Passthrough' } }] },
      undefined,
    ],
  ]
  for (const [cluster, metadata, spec, port] of cases) {
    const mesh = createTestMesh({ multiNetwork: true })
    mesh.apply(system('n1'))
    applyTo(mesh, cluster, gateway(metadata, spec))
    assert.deepEqual(servedNames(mesh), port === undefined ? [] : [`NetworkGateway/n2/192.0.2.7/${port}`])
  }
  const one = createTestMesh()
  applyTo(one, 'c2', gateway(label, { gatewayClassName: 'istio-east-west', listeners: [listener] }))
  assert.deepEqual(servedNames(one), [])
})

test('pods of another network are one workload behind its gateway, with the healthy ones’ weight', () => {
  const mesh = twoNetworks()
  const far = (name: string, ready: boolean, account = name) =>
    Object.assign(make.pod(`ns1/${name}`, `10.0.9.${name.length}`, { app: 'a' }, {}, { serviceAccountName: account }), {
      status: { podIP: `10.0.9.${name.length}`, conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
    })
  mesh.apply(
    make.service('ns1/svc', '10.1.0.1', { app: 'a' }, isGlobal),
    make.pod('ns1/near', '10.0.0.1', { app: 'a' }),
  )
  applyTo(
    mesh,
    'c2',
    make.service('ns1/svc', '10.1.0.2', { app: 'a' }, isGlobal),
    make.service('ns1/local', '10.1.0.3', { app: 'a' }),
    far('x', true, 'sb'),
    far('xx', true, 'sa'),
    far('xxx', false, 'sc'),
  )
  const sans = () => served(mesh, svc)?.subjectAltNames
  assert.deepEqual(servedNames(mesh), ['c1//Pod/ns1/near', svc])
  assert.deepEqual(
    sans(),
    ['sa', 'sb', 'sc'].map((account) => `spiffe://cluster.local/ns/ns1/sa/${account}`),
  )
  applyTo(mesh, 'c2', eastWest('istio-system/ew', '192.0.2.9', '192.0.2.10'))
  const uid = `n2/SplitHorizonWorkload/istio-system/ew/192.0.2.10/${svc}`
  assert.deepEqual(served(mesh, uid), {
    uid,
    name: uid,
    namespace: 'ns1',
    network: 'n2',
    tunnelProtocol: 'HBONE',
    networkGateway: { address: { network: 'n2', address: '192.0.2.10' }, hboneMtlsPort: 15008 },
    workloadType: 'POD',
    clusterId: 'c2',
    capacity: 2,
    services: { [svc]: { ports: [{ servicePort: 80, targetPort: 8080, appProtocol: 'HTTP11' }] } },
  })
  assert.equal(servedNames(mesh).filter((name) => name.includes('SplitHorizon')).length, 1)
  applyTo(mesh, 'c2', far('x', false, 'sb'), far('xx', false, 'sa'))
  assert.deepEqual([served(mesh, uid)?.capacity, served(mesh, uid)?.status], [3, 'UNHEALTHY'])
  const remove = (name: string) => mesh.inputs.feed('c2', 'pods').delete({ namespace: 'ns1', name })
  for (const name of ['x', 'xx', 'xxx']) remove(name)
  assert.equal(served(mesh, uid), undefined)
  assert.equal(sans(), undefined)
})

test('pods of another cluster on the same network are sent one by one, in services that are global there', () => {
  const mesh = createTestMesh({ multiNetwork: true })
  mesh.inputs.meshConfig.set(global)
  mesh.apply(system('n1'), make.service('ns1/svc', '10.1.0.1', { app: 'a' }, isGlobal))
  applyTo(
    mesh,
    'c2',
    system('n1'),
    make.node('node', { 'topology.kubernetes.io/zone': 'z2' }),
    make.pod('ns1/far', '10.0.0.2', { app: 'a' }),
    make.service('ns1/svc', '10.1.0.2', { app: 'a' }, isGlobal),
    make.service('ns1/local', '10.1.0.3', { app: 'a' }),
    make.service('ns1/only', '10.1.0.4', { app: 'a' }, isGlobal),
    make.slice('ns1/s', 'svc', [{ addresses: ['10.5.0.1'] }]),
    make.slice('ns1/t', 'local', [{ addresses: ['10.5.0.2'] }]),
    // Read from the config cluster alone.
    make.workloadEntry('ns1/vm', { address: '10.2.0.1' }),
    make.serviceEntry('ns1/se', { hosts: ['x.com'], endpoints: [{ address: '10.4.0.1' }] }),
  )
  const only = 'ns1/only.ns1.svc.cluster.local'
  const far = served(mesh, 'c2//Pod/ns1/far')
  assert.deepEqual(Object.keys(far?.services ?? {}), [only, svc])
  assert.deepEqual([far?.clusterId, far?.locality], ['c2', { zone: 'z2' }])
  assert.deepEqual(mesh.index.addresses.get(svc)?.aliases, ['n1/10.1.0.1', 'n1/10.1.0.2'])
  assert.deepEqual(mesh.index.addresses.get(only)?.aliases, ['n1/10.1.0.4'])
  const config = ['c1/networking.istio.io/WorkloadEntry/ns1/vm', 'ns1/x.com']
  for (const name of config) assert.equal(served(mesh, name), undefined)
  assert.ok(served(mesh, 'c2/discovery.k8s.io/EndpointSlice/ns1/s/10.5.0.1'))
  assert.equal(served(mesh, 'c2/discovery.k8s.io/EndpointSlice/ns1/t/10.5.0.2'), undefined)

  // Where the config cluster keeps its service to itself, nothing is merged into it.
  mesh.apply(make.service('ns1/svc', '10.1.0.1', { app: 'a' }))
  assert.deepEqual(mesh.index.addresses.get(svc)?.aliases, ['n1/10.1.0.1'])
})

test('of remote services without one of the config cluster the first cluster’s counts', () => {
  const mesh = createTestMesh({ multiNetwork: true })
  mesh.inputs.meshConfig.set(global)
  applyTo(mesh, 'c3', system('n1'), make.service('ns1/svc', '10.1.0.3', {}, { ...isGlobal, annotations: {} }))
  applyTo(
    mesh,
    'c2',
    system('n1'),
    Object.assign(make.service('ns1/svc', '10.1.0.2', {}, isGlobal), {
      spec: { clusterIP: '10.1.0.2', ports: [{ name: 'tcp', port: 99, targetPort: 99 }] },
    }),
  )
  assert.deepEqual(mesh.index.addresses.get(svc)?.aliases, ['n1/10.1.0.2', 'n1/10.1.0.3'])
  assert.deepEqual(served(mesh, svc)?.ports, [{ servicePort: 99, targetPort: 99, appProtocol: 'TCP' }])
  mesh.inputs.removeCluster('c2')
  assert.deepEqual(mesh.index.addresses.get(svc)?.aliases, ['n1/10.1.0.3'])
  assert.deepEqual(served(mesh, svc)?.ports, [{ servicePort: 80, targetPort: 8080, appProtocol: 'HTTP11' }])
})

test('entries of other networks join the weight of a global service', () => {
  const mesh = twoNetworks()
  mesh.apply(
    remote('istio-system/gw', 15010, [{ type: 'Hostname', value: 'gw.example.com' }]),
    make.service('ns1/svc', '10.1.0.1', { app: 'a' }, isGlobal),
    make.workloadEntry('ns1/vm', {
      address: '10.2.0.1',
      network: 'n2',
      weight: 5,
      labels: { app: 'a' },
      serviceAccount: 'vm',
    }),
    make.workloadEntry('ns1/vm2', { address: '10.2.0.2', network: 'n2', labels: { app: 'a' } }),
  )
  const uid = `n2/SplitHorizonWorkload/istio-system/gw/gw.example.com/${svc}`
  assert.equal(served(mesh, uid)?.capacity, 6)
  assert.deepEqual(served(mesh, uid)?.networkGateway, {
    hostname: { namespace: 'istio-system', hostname: 'gw.example.com' },
    hboneMtlsPort: 15010,
  })
  assert.deepEqual(served(mesh, svc)?.subjectAltNames, [
    'spiffe://cluster.local/ns/ns1/sa/default',
    'spiffe://cluster.local/ns/ns1/sa/vm',
  ])
  assert.equal(served(mesh, 'c1/networking.istio.io/WorkloadEntry/ns1/vm'), undefined)
})

test('the network label of the system namespace moves all that is of the cluster', () => {
  const mesh = createTestMesh()
  mesh.apply(
    system('n1'),
    make.pod('ns1/a', '10.0.0.1'),
    make.service('ns1/svc', '10.1.0.1', {}, { labels: { 'istio.io/use-waypoint': 'wp' } }),
    make.gateway('ns1/wp', {}, {}, [{ value: '10.5.0.1' }]),
    make.serviceEntry('ns1/se', {
      hosts: ['x.com'],
      addresses: ['10.3.0.0/24'],
      endpoints: [{ address: '10.4.0.1' }, { address: '10.4.0.2', network: 'n9' }],
    }),
    make.workloadEntry('ns1/vm', { address: '10.2.0.1' }),
  )
  const moved = mesh.touched(() => mesh.apply(system('n2')))
  assert.deepEqual(moved, [
    'c1//Pod/ns1/a',
    'c1/networking.istio.io/ServiceEntry/ns1/se/10.4.0.1',
    'c1/networking.istio.io/WorkloadEntry/ns1/vm',
    svc,
    'ns1/x.com',
  ])
  assert.deepEqual(served(mesh, svc)?.waypoint, {
    address: { network: 'n2', address: '10.5.0.1' },
    hboneMtlsPort: 15008,
  })
  assert.deepEqual(mesh.index.addresses.get('ns1/x.com')?.aliases, ['n2/10.3.0.0/24'])
  mesh.remove('Namespace//istio-system')
  assert.deepEqual(mesh.index.addresses.get('c1//Pod/ns1/a')?.aliases, ['/10.0.0.1'])
})
