// Pods and endpoints of slices as they are served: who is a workload, and what is said of it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestMesh, make, served, servedNames, type TestMesh } from './testing.ts'

const svc = 'ns1/svc.ns1.svc.cluster.local'
const withStatus = (path: string, status: object, spec: object = {}, metadata: object = {}, labels = { app: 'a' }) =>
  Object.assign(make.pod(path, '10.0.0.1', labels, { ...metadata }, { ...spec }), { status })
const ready = [{ type: 'Ready', status: 'True' }]
const portsOf = (mesh: TestMesh, uid: string, service = svc) =>
  (
    served(mesh, uid)?.services as Record<string, { ports?: { servicePort: number; targetPort: number }[] }> | undefined
  )?.[service]?.ports?.map(({ servicePort, targetPort }) => `${servicePort}:${targetPort}`)

test('a pod is a workload while it has readable addresses and has not ended', () => {
  const cases: [status: object, addresses: string[] | undefined][] = [
    [{ phase: 'Running', podIP: '10.0.0.1' }, ['10.0.0.1']],
    [{ phase: 'Pending', podIP: '10.0.0.1' }, ['10.0.0.1']],
    [{ phase: 'Unknown', podIP: '10.0.0.1' }, ['10.0.0.1']],
    [{ phase: 'Failed', podIP: '10.0.0.1' }, undefined],
    [{ phase: 'Succeeded', podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }] }, undefined],
    [{ phase: 'Pending' }, undefined],
    [{ phase: 'Running', podIP: '' }, undefined],
    [{ phase: 'Running', podIPs: [] }, undefined],
    [{ phase: 'Running', podIP: '10.0.0.1', podIPs: [] }, ['10.0.0.1']],
    [{ phase: 'Running', podIP: '10.0.0.1', podIPs: [{ ip: 'fd00::5' }, { ip: '10.0.0.9' }] }, ['fd00::5', '10.0.0.9']],
    [{ phase: 'Running', podIPs: [{ ip: '::ffff:10.0.0.7' }] }, ['10.0.0.7']],
    [{ phase: 'Running', podIPs: [{ ip: '10.0.0.1' }, { ip: 'ten' }] }, undefined],
    [{ phase: 'Running', podIP: '10.0.0.256' }, undefined],
  ]
  for (const [status, addresses] of cases) {
    const mesh = createTestMesh()
    mesh.apply(withStatus('ns1/a', status))
    assert.deepEqual(served(mesh, 'c1//Pod/ns1/a')?.addresses, addresses, JSON.stringify(status))
  }
  const mesh = createTestMesh()
  mesh.apply(make.pod('ns1/a', '10.0.0.1'))
  assert.deepEqual(
    mesh.touched(() => mesh.apply(withStatus('ns1/a', { phase: 'Succeeded', podIP: '10.0.0.1' }))),
    ['-c1//Pod/ns1/a'],
  )
  assert.deepEqual(mesh.index.addresses.lookup?.('/10.0.0.1'), [])
})

test('a pod is healthy while it is ready and not being deleted', () => {
  const cases: [status: object, metadata: object, unhealthy: boolean][] = [
    [{ podIP: '10.0.0.1', conditions: ready }, {}, false],
    [{ podIP: '10.0.0.1', conditions: [{ type: 'Ready', status: 'Unknown' }] }, {}, true],
    [{ podIP: '10.0.0.1', conditions: [{ type: 'ContainersReady', status: 'True' }] }, {}, true],
    [{ podIP: '10.0.0.1' }, {}, true],
    [{ podIP: '10.0.0.1', conditions: ready }, { deletionTimestamp: '2026-01-01T00:00:00Z' }, true],
  ]
  for (const [status, metadata, unhealthy] of cases) {
    const mesh = createTestMesh()
    mesh.apply(withStatus('ns1/a', status, {}, metadata), make.service('ns1/svc', '10.1.0.1', { app: 'a' }))
    const pod = served(mesh, 'c1//Pod/ns1/a')
    assert.equal(pod?.status, unhealthy ? 'UNHEALTHY' : undefined, JSON.stringify(status))
    assert.deepEqual(Object.keys(pod?.services ?? {}), [svc])
  }
})

test('pods of the host network share its address, and all are found under it', () => {
  const mesh = createTestMesh()
  mesh.apply(
    make.namespace('istio-system', { 'topology.istio.io/network': 'n1' }),
    make.pod('ns1/a', '10.0.0.1', {}, {}, { hostNetwork: true }),
    make.pod('ns2/b', '10.0.0.1', {}, {}, { hostNetwork: true }),
  )
  assert.equal(served(mesh, 'c1//Pod/ns1/a')?.networkMode, 'HOST_NETWORK')
  const found = mesh.index.addresses.lookup?.('n1/10.0.0.1') ?? []
  assert.deepEqual(found.map(({ name }) => name).sort(), ['c1//Pod/ns1/a', 'c1//Pod/ns2/b'])
  assert.deepEqual(mesh.index.addresses.lookup?.('/10.0.0.1'), [])
})

test('a port by name is looked up in each pod; without it the pod is a member without that port', () => {
  const mesh = createTestMesh()
  const service = make.service('ns1/svc', '10.1.0.1', { app: 'a' })
  const spec = {
    selector: { app: 'a' },
    ports: [
      { name: 'http', port: 80, targetPort: 'web' },
      { name: 'admin', port: 81, targetPort: '9901' },
      { name: 'same', port: 82 },
    ],
  }
  const pod = (name: string, ...ports: object[]) =>
    make.pod(`ns1/${name}`, `10.0.0.${name.charCodeAt(0)}`, { app: 'a' }, {}, { containers: [{ name: 'c', ports }] })
  mesh.apply(
    Object.assign(service, { spec }),
    pod('a', { name: 'web', containerPort: 8080 }),
    pod('b', { name: 'web', containerPort: 9090, protocol: 'TCP' }),
    pod('c', { name: 'web', containerPort: 7070, protocol: 'UDP' }),
    pod('d'),
  )
  const of = (name: string) => portsOf(mesh, `c1//Pod/ns1/${name}`)
  assert.deepEqual(of('a'), ['80:8080', '81:9901', '82:82'])
  assert.deepEqual(of('b'), ['80:9090', '81:9901', '82:82'])
  assert.deepEqual(of('c'), ['81:9901', '82:82'])
  assert.deepEqual(of('d'), ['81:9901', '82:82'])
  assert.deepEqual(
    mesh.touched(() => mesh.apply(pod('d', { name: 'web', containerPort: 1234 }))),
    ['c1//Pod/ns1/d'],
  )
  assert.deepEqual(of('d'), ['80:1234', '81:9901', '82:82'])
})

test('a headless service has members as any other', () => {
  const mesh = createTestMesh()
  mesh.apply(make.service('ns1/svc', 'None', { app: 'a' }), make.pod('ns1/a', '10.0.0.1', { app: 'a', more: 'x' }))
  assert.equal(served(mesh, svc)?.addresses, undefined)
  assert.deepEqual(portsOf(mesh, 'c1//Pod/ns1/a'), ['80:8080'])
  const found = mesh.index.addresses.lookup?.(svc) ?? []
  assert.deepEqual(
    found.map(({ name }) => name),
    [svc, 'c1//Pod/ns1/a'],
  )
})

test('selectors reach pods of their own namespace that carry all labels; an empty one reaches none', () => {
  const mesh = createTestMesh()
  mesh.apply(
    make.service('ns1/svc', '10.1.0.1', { app: 'a', tier: 'b' }),
    make.service('ns1/none', '10.1.0.2', {}),
    make.pod('ns1/a', '10.0.0.1', { app: 'a', tier: 'b', x: 'y' }),
    make.pod('ns1/b', '10.0.0.2', { app: 'a' }),
    make.pod('ns2/c', '10.0.0.3', { app: 'a', tier: 'b' }),
  )
  const joined = (uid: string) => Object.keys(served(mesh, uid)?.services ?? {})
  assert.deepEqual(joined('c1//Pod/ns1/a'), [svc])
  assert.deepEqual(joined('c1//Pod/ns1/b'), [])
  assert.deepEqual(joined('c1//Pod/ns2/c'), [])
})

test('a slice makes the very pod it names a member, by kind, namespace, name and uid', () => {
  const reference = { kind: 'Pod', namespace: 'ns1', name: 'a', uid: 'u1' }
  const cases: [targetRef: object | undefined, isMember: boolean, workloads: number][] = [
    [reference, true, 1],
    [{ ...reference, namespace: undefined }, true, 1],
    [{ ...reference, uid: 'u0' }, false, 1],
    [{ ...reference, uid: undefined }, false, 1],
    [{ ...reference, namespace: 'ns2' }, false, 1],
    [{ ...reference, name: 'z' }, false, 1],
    [{ ...reference, kind: 'Node' }, false, 2],
    [undefined, false, 2],
  ]
  for (const [targetRef, isMember, workloads] of cases) {
    const mesh = createTestMesh()
    const endpoint = { addresses: ['10.0.0.1'], ...(targetRef === undefined ? {} : { targetRef }) }
    mesh.apply(
      make.pod('ns1/a', '10.0.0.1', {}, { uid: 'u1' }),
      make.service('ns1/svc', '10.1.0.1'),
      make.slice('ns1/svc-1', 'svc', [endpoint]),
    )
    assert.deepEqual(portsOf(mesh, 'c1//Pod/ns1/a'), isMember ? ['80:8080'] : undefined, JSON.stringify(targetRef))
    assert.equal([...mesh.index.workloads.list()].length, workloads, JSON.stringify(targetRef))
  }
})

test('a slice names a pod before it, its service and its ports are known', () => {
  const pod = make.pod('ns1/a', '10.0.0.1', {}, { uid: 'u1' })
  const service = make.service('ns1/svc', '10.1.0.1')
  const slice = make.slice('ns1/svc-1', 'svc', [
    { addresses: ['10.0.0.1'], targetRef: { kind: 'Pod', name: 'a', uid: 'u1' } },
  ])
  for (const order of [
    [pod, service, slice],
    [slice, service, pod],
    [service, slice, pod],
    [slice, pod, service],
  ]) {
    const mesh = createTestMesh()
    for (const object of order) mesh.apply(object)
    assert.deepEqual(portsOf(mesh, 'c1//Pod/ns1/a'), ['80:8080'])
    mesh.remove('Service/ns1/svc')
    assert.equal(portsOf(mesh, 'c1//Pod/ns1/a'), undefined)
    assert.deepEqual(servedNames(mesh), ['c1//Pod/ns1/a'])
    mesh.apply(service)
    assert.deepEqual(
      mesh.touched(() => mesh.remove('EndpointSlice/ns1/svc-1')),
      ['c1//Pod/ns1/a'],
    )
  }
})

test('a pod that a selector and a slice name is a member once, with the ports of the selector', () => {
  const mesh = createTestMesh()
  mesh.apply(
    make.pod('ns1/a', '10.0.0.1', { app: 'a' }, { uid: 'u1' }),
    make.service('ns1/svc', '10.1.0.1', { app: 'a' }),
    make.slice('ns1/svc-1', 'svc', [
      { addresses: ['10.0.0.1'], targetRef: { kind: 'Pod', name: 'a', uid: 'u1' } },
      { addresses: ['10.9.0.1'] },
    ]),
  )
  assert.deepEqual(portsOf(mesh, 'c1//Pod/ns1/a'), ['80:8080'])
  assert.deepEqual(portsOf(mesh, 'c1/discovery.k8s.io/EndpointSlice/ns1/svc-1/10.9.0.1'), ['80:9080'])
})

test('endpoints of a slice that are no pods are workloads of their service', () => {
  const mesh = createTestMesh({ domainSuffix: 'corp.example' })
  const uid = (address: string) => `c1/discovery.k8s.io/EndpointSlice/ns1/s-1/${address}`
  const service = Object.assign(make.service('ns1/svc', '10.1.0.1'), {
    spec: {
      ports: [
        { name: 'http', port: 80, targetPort: 1 },
        { name: 'udp', port: 81, protocol: 'UDP' },
        { name: 'gone', port: 82 },
        { name: 'other', port: 83 },
        { port: 84 },
      ],
    },
  })
  const ports = [
    { name: 'http', port: 9080 },
    { name: 'udp', port: 9081, protocol: 'UDP' },
    { name: 'gone', protocol: 'TCP' },
    { name: 'other', port: 9083, protocol: 'TCP' },
    { name: '', port: 9084 },
    { port: 9085 },
  ]
  mesh.apply(
    make.namespace('istio-system', { 'topology.istio.io/network': 'n1' }),
    service,
    make.slice(
      'ns1/s-1',
      'svc',
      [
        { addresses: ['10.9.0.1', '10.9.0.2'], conditions: { ready: false } },
        { addresses: ['10.9.0.1'], conditions: { ready: true } },
        { addresses: ['10.9.0.3'], conditions: {} },
        { addresses: [] },
        { addresses: ['10.9.0.4', 'x'] },
        { addresses: ['10.9.0.4'] },
        {},
      ],
      { ports },
    ),
  )
  assert.deepEqual(served(mesh, uid('10.9.0.1')), {
    uid: uid('10.9.0.1'),
    name: 's-1',
    namespace: 'ns1',
    addresses: ['10.9.0.1', '10.9.0.2'],
    network: 'n1',
    status: 'UNHEALTHY',
    clusterId: 'c1',
    networkMode: 'HOST_NETWORK',
    services: {
      'ns1/svc.ns1.svc.corp.example': {
        ports: [
          { servicePort: 80, targetPort: 9080 },
          { servicePort: 83, targetPort: 9083 },
          { servicePort: 84, targetPort: 9084 },
        ],
      },
    },
  })
  assert.deepEqual(servedNames(mesh), [uid('10.9.0.1'), uid('10.9.0.3'), 'ns1/svc.ns1.svc.corp.example'])
  assert.equal(served(mesh, uid('10.9.0.3'))?.status, undefined)
})

test('slices of names, of no service, and of services that are not served give nothing', () => {
  const mesh = createTestMesh()
  const external = Object.assign(make.service('ns1/ext', ''), { spec: { type: 'ExternalName', externalName: 'x.com' } })
  const endpoints = [{ addresses: ['10.9.0.1'] }]
  const unlabelled = make.slice('ns1/c', 'svc', endpoints)
  mesh.apply(
    external,
    make.service('ns1/svc', '10.1.0.1'),
    make.slice('ns1/a', 'svc', [{ addresses: ['x.example.com'] }], { addressType: 'FQDN' }),
    make.slice('ns1/b', 'ext', endpoints),
    { ...unlabelled, metadata: { ...unlabelled.metadata, labels: {} } },
    make.slice('ns1/d', 'missing', endpoints),
    make.slice('ns2/e', 'svc', endpoints),
  )
  assert.deepEqual(servedNames(mesh), [svc])
  // A Service may turn from a name into a service and back.
  mesh.apply(make.service('ns1/ext', '10.1.0.2'))
  assert.ok(served(mesh, 'c1/discovery.k8s.io/EndpointSlice/ns1/b/10.9.0.1'))
  mesh.apply(external)
  assert.deepEqual(servedNames(mesh), [svc])
})

test('the locality of a pod is that of its node, as soon as it is known', () => {
  const mesh = createTestMesh()
  mesh.apply(make.pod('ns1/a', '10.0.0.1'), make.pod('ns1/b', '10.0.0.2', {}, {}, { nodeName: 'other' }))
  const locality = () => served(mesh, 'c1//Pod/ns1/a')?.locality
  assert.equal(locality(), undefined)
  mesh.apply(make.node('node', { 'topology.kubernetes.io/zone': 'z' }))
  assert.deepEqual(locality(), { zone: 'z' })
  const placed = { 'topology.kubernetes.io/region': 'r', 'topology.istio.io/subzone': 's' }
  assert.deepEqual(
    mesh.touched(() => mesh.apply(make.node('node', placed))),
    ['c1//Pod/ns1/a'],
  )
  assert.deepEqual(locality(), { region: 'r', subzone: 's' })
  assert.deepEqual(
    mesh.touched(() => mesh.apply(make.node('node', { ...placed, 'kubernetes.io/hostname': 'h' }))),
    [],
  )
  mesh.remove('Node//node')
  assert.equal(locality(), undefined)
})

test('the tunnel is the application’s own where its label says so, else what the node agent has made work', () => {
  const cases: [labels: object, annotations: object, expected: [unknown, unknown]][] = [
    [{}, {}, [undefined, undefined]],
    [{ 'networking.istio.io/tunnel': 'http' }, {}, ['HBONE', true]],
    [{ 'networking.istio.io/tunnel': 'none, http' }, {}, ['HBONE', true]],
    [{ 'networking.istio.io/tunnel': 'http2' }, {}, [undefined, undefined]],
    [{}, { 'ambient.istio.io/redirection': 'enabled' }, ['HBONE', undefined]],
    [{}, { 'ambient.istio.io/redirection': 'pending' }, [undefined, undefined]],
    [{ 'networking.istio.io/tunnel': 'http' }, { 'ambient.istio.io/redirection': 'enabled' }, ['HBONE', true]],
    [{ 'istio.io/dataplane-mode': 'ambient' }, {}, [undefined, undefined]],
  ]
  for (const [labels, annotations, expected] of cases) {
    const mesh = createTestMesh()
    mesh.apply(make.pod('ns1/a', '10.0.0.1', { ...labels }, { annotations }))
    const { tunnelProtocol, nativeTunnel } = served(mesh, 'c1//Pod/ns1/a') ?? {}
    assert.deepEqual([tunnelProtocol, nativeTunnel], expected, JSON.stringify([labels, annotations]))
  }
})

test('a ServiceEntry selects pods of its namespace, at their port of its port’s name', () => {
  const entry = make.serviceEntry('ns1/e', {
    hosts: ['x.com', 'y.com'],
    workloadSelector: { labels: { app: 'a' } },
    ports: [
      { number: 80, name: 'http', protocol: 'HTTP', targetPort: 8000 },
      { number: 81, name: 'other', protocol: 'TCP' },
    ],
  })
  const pod = make.pod(
    'ns1/a',
    '10.0.0.1',
    { app: 'a' },
    {},
    { containers: [{ ports: [{ name: 'http', containerPort: 7 }] }] },
  )
  const elsewhere = make.pod('ns2/a', '10.0.0.2', { app: 'a' })
  const mesh = createTestMesh()
  mesh.apply(entry, pod, elsewhere, make.pod('ns1/b', '10.0.0.3', { app: 'a' }))
  for (const host of ['ns1/x.com', 'ns1/y.com']) {
    assert.deepEqual(portsOf(mesh, 'c1//Pod/ns1/a', host), ['80:7', '81:81'])
    assert.deepEqual(portsOf(mesh, 'c1//Pod/ns1/b', host), ['80:8000', '81:81'])
  }
  assert.equal(served(mesh, 'c1//Pod/ns2/a')?.services, undefined)
  const off = createTestMesh({ serviceEntriesSelectPods: false })
  off.apply(entry, pod, make.workloadEntry('ns1/w', { address: '10.0.0.9', labels: { app: 'a' } }))
  assert.equal(served(off, 'c1//Pod/ns1/a')?.services, undefined)
  const entryUid = 'c1/networking.istio.io/WorkloadEntry/ns1/w'
  assert.deepEqual(portsOf(off, entryUid, 'ns1/x.com'), ['80:8000', '81:81'])
})
