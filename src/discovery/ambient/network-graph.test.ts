import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import type { KubeObject } from '../../api/index.ts'
import { workload } from '../../proto/index.ts'
import { parseIp } from './addresses.ts'
import { networkOfAddress, networkPlan } from './network-plan.ts'
import { createTestMesh, make, type TestMesh } from './testing.ts'

const system = (network?: string) =>
  make.namespace('istio-system', network === undefined ? {} : { 'topology.istio.io/network': network })

function workloadOf({ index }: TestMesh, name: string): workload.Workload {
  const resource = index.workloads.get(name)
  assert.ok(resource, `workload ${name}`)
  return fromBinary(workload.WorkloadSchema, resource.body)
}

const networkOf = (mesh: TestMesh, name: string): string => workloadOf(mesh, name).network

function gatewayService(name: string, labels: Record<string, string>, port = 15008, ip = '192.0.2.1'): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'istio-system', name, labels },
    spec: { clusterIP: '10.9.0.1', selector: { app: name }, ports: [{ name: 'hbone', port }] },
    ...{ status: { loadBalancer: { ingress: [{ ip }] } } },
  }
}

const gatewayPod = (name: string) =>
  make.pod(`istio-system/${name}`, '10.0.9.9', { app: name }, {}, { serviceAccountName: 'ew' })

test('the longest prefix that contains an address names its network', () => {
  const plan = networkPlan({
    networks: {
      wide: { endpoints: [{ fromCidr: '10.0.0.0/8' }, { fromCidr: 'fd00::/8' }] },
      narrow: { endpoints: [{ fromCidr: '10.1.2.3/16' }, { fromRegistry: 'c1' }] },
      late: { endpoints: [{ fromCidr: '10.1.0.0/16' }, { fromRegistry: 'c1' }] },
    },
  })
  const of = (text: string) => networkOfAddress(plan, parseIp(text) ?? new Uint8Array())
  assert.deepEqual(['10.2.0.1', '10.1.0.1', 'fd12::1', '11.0.0.1'].map(of), ['wide', 'narrow', 'wide', undefined])
  assert.equal(plan.byCluster.get('c1'), 'narrow')
})

test('an endpoint is on the network of its label, else of its cluster’s label, else as mesh networks say', () => {
  const mesh = createTestMesh()
  const pod = 'c1//Pod/ns1/p'
  mesh.apply(system(), make.namespace('ns1'), make.pod('ns1/p', '10.1.0.1'))
  assert.equal(networkOf(mesh, pod), '')
  const ranges = { ranged: { endpoints: [{ fromCidr: '10.1.0.0/16' }] } }
  mesh.inputs.meshNetworks.set({ networks: ranges })
  assert.equal(networkOf(mesh, pod), 'ranged')
  mesh.inputs.meshNetworks.set({ networks: { ...ranges, registered: { endpoints: [{ fromRegistry: 'c1' }] } } })
  assert.equal(networkOf(mesh, pod), 'registered')
  mesh.apply(system('labelled'))
  assert.equal(networkOf(mesh, pod), 'labelled')
  mesh.apply(make.pod('ns1/p', '10.1.0.1', { 'topology.istio.io/network': 'own' }))
  assert.equal(networkOf(mesh, pod), 'own')
})

test('a WorkloadEntry, an endpoint and an endpoint of a slice are placed by their addresses, too', () => {
  const mesh = createTestMesh()
  mesh.inputs.meshNetworks.set({ networks: { vms: { endpoints: [{ fromCidr: '10.9.0.0/16' }] } } })
  const slice: KubeObject = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: 'ns1', name: 's-1', labels: { 'kubernetes.io/service-name': 's' } },
    ...{ addressType: 'IPv4', endpoints: [{ addresses: ['10.9.0.3'] }], ports: [{ name: 'http', port: 80 }] },
  }
  mesh.apply(
    make.namespace('ns1'),
    make.workloadEntry('ns1/a', { address: '10.9.0.1' }),
    make.workloadEntry('ns1/b', { address: '10.9.0.1', network: 'said' }),
    make.workloadEntry('ns1/c', { address: '10.8.0.1' }),
    make.serviceEntry('ns1/se', { hosts: ['x.example.com'], endpoints: [{ address: '10.9.0.2' }] }),
    make.service('ns1/s', '10.96.0.1'),
    slice,
  )
  const entry = (name: string) => networkOf(mesh, `c1/networking.istio.io/WorkloadEntry/ns1/${name}`)
  assert.deepEqual(['a', 'b', 'c'].map(entry), ['vms', 'said', ''])
  assert.equal(networkOf(mesh, 'c1/networking.istio.io/ServiceEntry/ns1/se/10.9.0.2'), 'vms')
  assert.equal(networkOf(mesh, 'c1/discovery.k8s.io/EndpointSlice/ns1/s-1/10.9.0.3'), 'vms')
})

test('a Service labelled with a network is a gateway into it, with the identity of its pods', () => {
  const mesh = createTestMesh({ multiNetwork: true })
  const gateway = 'NetworkGateway/n2/192.0.2.1/15008'
  mesh.apply(
    system('n1'),
    gatewayPod('gw'),
    make.namespace('ns1'),
    make.workloadEntry('ns1/vm', { address: '10.9.0.1' }),
  )
  assert.equal(mesh.index.workloads.get(gateway), undefined)
  mesh.apply(gatewayService('gw', { 'topology.istio.io/network': 'n2' }))
  assert.equal(workloadOf(mesh, gateway).serviceAccount, 'ew')
  assert.equal(workloadOf(mesh, gateway).namespace, 'istio-system')

  // Without the port of tunnels, and where a Gateway speaks for it, it is none.
  mesh.apply(gatewayService('gw', { 'topology.istio.io/network': 'n2' }, 15443))
  assert.equal(mesh.index.workloads.get(gateway), undefined)
  mesh.apply(
    gatewayService('gw', { 'topology.istio.io/network': 'n2', 'gateway.networking.k8s.io/gateway-name': 'gw' }),
  )
  assert.equal(mesh.index.workloads.get(gateway), undefined)
})

test('a Gateway counts before a Service with the same address', () => {
  const mesh = createTestMesh({ multiNetwork: true })
  mesh.apply(system('n1'), gatewayPod('gw'), gatewayService('gw', { 'topology.istio.io/network': 'n2' }), {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'Gateway',
    metadata: { namespace: 'istio-system', name: 'remote', labels: { 'topology.istio.io/network': 'n2' } },
    spec: { gatewayClassName: 'istio-remote', listeners: [{ name: 'mesh', port: 15009, protocol: 'HBONE' }] },
    status: { addresses: [{ type: 'IPAddress', value: '192.0.2.1' }] },
  })
  const gateways = [...mesh.index.workloads.list()].map(({ name }) => name).filter((name) => /^NetworkG/.test(name))
  assert.deepEqual(gateways, ['NetworkGateway/n2/192.0.2.1/15009'])
})

test('gateways of mesh networks are Services of known clusters, by name or by address; others are reported', () => {
  const mesh = createTestMesh({ multiNetwork: true })
  const registryServiceName = 'ew.istio-system.svc.cluster.local'
  const named = (gateways: object[]) =>
    mesh.inputs.meshNetworks.set({ networks: { n2: { endpoints: [{ fromRegistry: 'c2' }], gateways } } })
  const unused = () => [...mesh.index.unusedGateways.entries()].map(([, { gateway, reason }]) => [gateway, reason])
  const names = () => [...mesh.index.workloads.list()].map(({ name }) => name).filter((name) => /^NetworkG/.test(name))
  mesh.apply(system('n1'))
  named([{ registryServiceName, port: 15443 }])
  assert.match(unused()[0]?.[1] ?? '', /no Service of a known cluster/)
  assert.deepEqual(names(), [])

  mesh.graph.transaction(() => {
    mesh.inputs.feed('c2', 'services').set(gatewayService('ew', {}) as never)
    mesh.inputs.feed('c2', 'pods').set(gatewayPod('ew') as never)
  })
  mesh.inputs.trustDomains.set('c2', 'other.domain')
  assert.deepEqual(names(), ['NetworkGateway/n2/192.0.2.1/15008'])
  assert.deepEqual(unused(), [])
  assert.equal(workloadOf(mesh, 'NetworkGateway/n2/192.0.2.1/15008').trustDomain, 'other.domain')

  named([
    { address: '192.0.2.1', port: 15008 },
    { address: '192.0.2.77', port: 15008 },
  ])
  assert.deepEqual(names(), ['NetworkGateway/n2/192.0.2.1/15008'])
  assert.deepEqual(
    unused().map(([gateway]) => gateway),
    ['192.0.2.77:15008'],
  )
  mesh.inputs.meshNetworks.delete()
  assert.deepEqual([names(), unused()], [[], []])
})

test('pods of another cluster have its trust domain, and so do the names their services vouch for', () => {
  const mesh = createTestMesh({ multiNetwork: true })
  mesh.inputs.meshConfig.set({ serviceScopeConfigs: [{ scope: 'GLOBAL' }] })
  mesh.inputs.trustDomains.set('c2', 'two.example')
  const far = (kind: 'namespaces' | 'pods' | 'services', object: KubeObject) =>
    mesh.inputs.feed('c2', kind).set(object as never)
  mesh.graph.transaction(() => {
    far('namespaces', system('n2'))
    far('namespaces', make.namespace('ns1'))
    far('pods', make.pod('ns1/far', '10.2.0.1', { app: 'a' }))
    far('services', make.service('ns1/svc', '10.96.2.1', { app: 'a' }))
    mesh.apply(system('n1'), make.namespace('ns1'), make.service('ns1/svc', '10.96.1.1', { app: 'a' }))
  })
  const { body } = mesh.index.addresses.get('ns1/svc.ns1.svc.cluster.local') ?? { body: new Uint8Array() }
  const { type } = fromBinary(workload.AddressSchema, body)
  assert.deepEqual(type.case === 'service' && type.value.subjectAltNames, ['spiffe://two.example/ns/ns1/sa/sa'])

  mesh.graph.transaction(() => far('namespaces', system('n1')))
  assert.equal(workloadOf(mesh, 'c2//Pod/ns1/far').trustDomain, 'two.example')
})

test('waypoints of one name in two clusters are let in together', () => {
  const mesh = createTestMesh({ multiNetwork: true, autoAllowWaypoints: true })
  const instance = (account: string) =>
    make.pod(
      `ns1/${account}`,
      '10.0.0.7',
      { 'gateway.networking.k8s.io/gateway-name': 'wp' },
      {},
      { serviceAccountName: account },
    )
  mesh.inputs.trustDomains.set('c2', 'two.example')
  mesh.graph.transaction(() => {
    mesh.apply(system('n'), make.namespace('ns1'), make.waypoint('ns1/wp'), instance('wp'))
    const far = (kind: 'namespaces' | 'gateways' | 'pods', object: KubeObject) =>
      mesh.inputs.feed('c2', kind).set(object as never)
    far('namespaces', system('n'))
    far('namespaces', make.namespace('ns1'))
    far('gateways', make.waypoint('ns1/wp'))
    far('pods', instance('wp2'))
  })
  const policy = mesh.index.authorizations.get('ns1/istio_allow_waypoint_ns1_wp')
  const text = Buffer.from(policy?.body ?? []).toString('latin1')
  assert.match(text, /cluster\.local\/ns\/ns1\/sa\/wp/)
  assert.match(text, /two\.example\/ns\/ns1\/sa\/wp2/)
  assert.deepEqual(mesh.reports, [])
})
