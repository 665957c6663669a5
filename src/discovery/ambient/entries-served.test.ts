// WorkloadEntries, ServiceEntries and their endpoints as they are served.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestMesh, make, served, servedNames, type TestMesh } from './testing.ts'

const entryUid = (name: string) => `c1/networking.istio.io/WorkloadEntry/ns1/${name}`
const endpointUid = (entry: string, address: string) => `c1/networking.istio.io/ServiceEntry/ns1/${entry}/${address}`
type Ports = Record<string, { ports?: { servicePort: number; targetPort: number }[] }>
const memberships = (mesh: TestMesh, uid: string) =>
  Object.fromEntries(
    Object.entries((served(mesh, uid)?.services ?? {}) as Ports).map(([service, { ports = [] }]) => [
      service,
      ports.map(({ servicePort, targetPort }) => `${servicePort}:${targetPort}`),
    ]),
  )

test('a WorkloadEntry is served with an address, or with a host name, or with neither', () => {
  const cases: [spec: object, addresses: unknown, hostname: unknown][] = [
    [{ address: '10.2.0.1' }, ['10.2.0.1'], undefined],
    [{ address: 'FD00:0::1' }, ['fd00::1'], undefined],
    [{ address: 'vm.example.com' }, undefined, 'vm.example.com'],
    [{ address: '10.2.0.1/32' }, undefined, '10.2.0.1/32'],
    [{}, undefined, undefined],
  ]
  for (const [spec, addresses, hostname] of cases) {
    const mesh = createTestMesh()
    mesh.apply(make.workloadEntry('ns1/vm', spec as never))
    const found = served(mesh, entryUid('vm'))
    assert.ok(found)
    assert.deepEqual([found.addresses, found.hostname], [addresses, hostname], JSON.stringify(spec))
  }
})

test('all that a WorkloadEntry says is served', () => {
  const mesh = createTestMesh()
  mesh.apply(
    make.namespace('istio-system', { 'topology.istio.io/network': 'n1' }),
    make.workloadEntry(
      'ns1/vm',
      {
        address: '10.2.0.1',
        network: 'vms',
        serviceAccount: 'vm-sa',
        locality: 'eu/eu-1/rack/more',
        weight: 7,
        labels: { app: 'spec', version: 'v1', 'networking.istio.io/tunnel': 'http' },
      },
      { labels: { app: 'meta' }, annotations: { 'istio.io/autoRegistrationGroup': 'group' } },
    ),
  )
  assert.deepEqual(served(mesh, entryUid('vm')), {
    uid: entryUid('vm'),
    name: 'vm',
    namespace: 'ns1',
    addresses: ['10.2.0.1'],
    network: 'vms',
    tunnelProtocol: 'HBONE',
    nativeTunnel: true,
    serviceAccount: 'vm-sa',
    canonicalName: 'meta',
    canonicalRevision: 'v1',
    workloadType: 'POD',
    workloadName: 'group',
    clusterId: 'c1',
    locality: { region: 'eu', zone: 'eu-1', subzone: 'rack' },
    capacity: 7,
  })
  mesh.apply(make.workloadEntry('ns1/vm', { address: '10.2.0.1', weight: 0, locality: 'eu' }))
  const { capacity, locality, network, workloadName } = served(mesh, entryUid('vm')) ?? {}
  assert.deepEqual([capacity, locality, network, workloadName], [undefined, { region: 'eu' }, 'n1', 'vm'])
})

test('health counts for a WorkloadEntry whose proxy checks it', () => {
  const annotations = { 'proxy.istio.io/health-checks-enabled': 'true' }
  const cases: [annotations: object, conditions: object[], unhealthy: boolean][] = [
    [{}, [], false],
    [{}, [{ type: 'Healthy', status: 'False' }], false],
    [annotations, [], true],
    [annotations, [{ type: 'Healthy', status: 'False' }], true],
    [annotations, [{ type: 'Healthy', status: 'True' }], false],
    [{ 'proxy.istio.io/health-checks-enabled': 'false' }, [], false],
  ]
  for (const [notes, conditions, unhealthy] of cases) {
    const mesh = createTestMesh()
    const entry = make.workloadEntry('ns1/vm', { address: '10.2.0.1' }, { annotations: notes })
    mesh.apply(Object.assign(entry, { status: { conditions } }))
    assert.equal(served(mesh, entryUid('vm'))?.status, unhealthy ? 'UNHEALTHY' : undefined)
  }
})

test('the labels of a WorkloadEntry select it for services and policies: those of its metadata over those of its spec', () => {
  const mesh = createTestMesh()
  const spec = {
    selector: { app: 'a' },
    ports: [
      { name: 'http', port: 80, targetPort: 'web' },
      { name: 'num', port: 81, targetPort: 8081 },
    ],
  }
  mesh.apply(
    Object.assign(make.service('ns1/svc', '10.1.0.1'), { spec }),
    make.serviceEntry('ns1/se', {
      hosts: ['x.com'],
      workloadSelector: { labels: { app: 'a' } },
      addresses: ['10.3.0.1'],
    }),
    make.policy('ns1/p', { selector: { matchLabels: { app: 'a' } }, rules: [{}] }),
    make.workloadEntry('ns1/one', { address: '10.2.0.1', labels: { app: 'a' }, ports: { web: 8080, num: 9 } }),
    make.workloadEntry('ns1/two', { address: '10.2.0.2', labels: { app: 'b' } }, { labels: { app: 'a' } }),
    make.workloadEntry('ns1/no', { address: '10.2.0.3', labels: { app: 'a' } }, { labels: { app: 'b' } }),
  )
  const svc = 'ns1/svc.ns1.svc.cluster.local'
  assert.deepEqual(memberships(mesh, entryUid('one')), { [svc]: ['80:8080', '81:9'], 'ns1/x.com': ['80:80'] })
  assert.deepEqual(memberships(mesh, entryUid('two')), { [svc]: ['81:8081'], 'ns1/x.com': ['80:80'] })
  assert.deepEqual(memberships(mesh, entryUid('no')), {})
  assert.deepEqual(served(mesh, entryUid('two'))?.authorizationPolicies, ['ns1/p'])
  assert.equal(served(mesh, entryUid('no'))?.authorizationPolicies, undefined)
})

test('every endpoint of an entry is a member of all its hosts that are served', () => {
  const mesh = createTestMesh()
  const entry = make.serviceEntry('ns1/se', {
    hosts: ['a.com', 'b.com', 'a.com', 'svc.ns1.svc.cluster.local'],
    ports: [
      { number: 80, name: 'http', protocol: 'HTTP', targetPort: 8080 },
      { number: 443, name: 'tls', protocol: 'TLS' },
    ],
    endpoints: [
      { address: '10.4.0.1', ports: { http: 1234 }, serviceAccount: 'ep', weight: 3, locality: 'r/z' },
      { address: '10.4.0.2', network: 'n2' },
      { address: 'host.example.com' },
      { address: '10.4.0.1', ports: { http: 1 } },
      { address: 'unix:///run/x.sock' },
    ],
  })
  mesh.apply(entry, make.service('ns1/svc', '10.1.0.1', { app: 'a' }))
  const all = (ports: string[]) => ({ 'ns1/a.com': ports, 'ns1/b.com': ports })
  assert.deepEqual(memberships(mesh, endpointUid('se', '10.4.0.1')), all(['80:1234', '443:443']))
  assert.deepEqual(memberships(mesh, endpointUid('se', '10.4.0.2')), all(['80:8080', '443:443']))
  assert.equal(served(mesh, endpointUid('se', '10.4.0.2'))?.network, 'n2')
  assert.equal(served(mesh, endpointUid('se', 'host.example.com'))?.network, undefined)
  assert.equal(served(mesh, endpointUid('se', 'host.example.com'))?.hostname, 'host.example.com')
  const { serviceAccount, capacity, locality, workloadName } = served(mesh, endpointUid('se', '10.4.0.1')) ?? {}
  assert.deepEqual([serviceAccount, capacity, locality, workloadName], ['ep', 3, { region: 'r', zone: 'z' }, 'se'])
  assert.deepEqual(servedNames(mesh), [
    endpointUid('se', '10.4.0.1'),
    endpointUid('se', '10.4.0.2'),
    endpointUid('se', 'host.example.com'),
    'ns1/a.com',
    'ns1/b.com',
    'ns1/svc.ns1.svc.cluster.local',
  ])
  // Once the Service is gone, its host name is the entry's.
  mesh.remove('Service/ns1/svc')
  assert.ok(Object.hasOwn(memberships(mesh, endpointUid('se', '10.4.0.2')), 'ns1/svc.ns1.svc.cluster.local'))
})

test('hosts imply endpoints where DNS finds them, and nothing else is written', () => {
  const endpointsOf = (spec: object) => {
    const mesh = createTestMesh()
    mesh.apply(make.serviceEntry('ns1/se', { hosts: ['a.com', 'b.com', 'a.com'], ...spec }))
    return servedNames(mesh).filter((name) => name.startsWith('c1/'))
  }
  const both = [endpointUid('se', 'a.com'), endpointUid('se', 'b.com')]
  assert.deepEqual(endpointsOf({ resolution: 'DNS' }), both)
  assert.deepEqual(endpointsOf({ resolution: 'DNS_ROUND_ROBIN' }), both)
  assert.deepEqual(endpointsOf({ resolution: 'DYNAMIC_DNS' }), both)
  assert.deepEqual(endpointsOf({ resolution: 'STATIC' }), [])
  assert.deepEqual(endpointsOf({ resolution: 'NONE' }), [])
  assert.deepEqual(endpointsOf({ resolution: undefined }), [])
  assert.deepEqual(endpointsOf({ resolution: 'DNS', endpoints: [] }), both)
  assert.deepEqual(endpointsOf({ resolution: 'DNS', workloadSelector: { labels: { app: 'a' } } }), [])
  assert.deepEqual(endpointsOf({ resolution: 'DNS', endpoints: [{ address: 'c.com' }] }), [endpointUid('se', 'c.com')])
  assert.deepEqual(endpointsOf({ resolution: 'DNS', addresses: ['10.3.0.1', 'wrong'] }), [])

  const mesh = createTestMesh()
  mesh.apply(
    make.serviceEntry(
      'ns1/se',
      { hosts: ['a.com', 'b.com'], resolution: 'DNS' },
      { creationTimestamp: '2026-02-01T00:00:00Z' },
    ),
    make.serviceEntry('ns1/older', { hosts: ['a.com'] }, { creationTimestamp: '2026-01-01T00:00:00Z' }),
  )
  assert.deepEqual(servedNames(mesh), [endpointUid('se', 'b.com'), 'ns1/a.com', 'ns1/b.com'])
  assert.deepEqual(memberships(mesh, endpointUid('se', 'b.com')), { 'ns1/b.com': ['80:80'] })
  assert.deepEqual(
    mesh.touched(() => mesh.remove('ServiceEntry/ns1/older')),
    [endpointUid('se', 'a.com'), 'ns1/a.com'],
  )
})

test('addresses of an entry are addresses or prefixes, or the whole entry is not served', () => {
  const addressesOf = (...addresses: string[]) => {
    const mesh = createTestMesh()
    mesh.apply(
      make.namespace('istio-system', { 'topology.istio.io/network': 'n1' }),
      make.serviceEntry('ns1/se', { hosts: ['x.com'], addresses, endpoints: [{ address: '10.4.0.1' }] }),
    )
    return { names: servedNames(mesh), aliases: mesh.index.addresses.get('ns1/x.com')?.aliases }
  }
  assert.deepEqual(addressesOf('10.3.1.7/16', '10.3.0.1/32', 'fd00::1:2/64', 'fd00::9/128', '0.0.0.0/0').aliases, [
    'n1/10.3.0.0/16',
    'n1/10.3.0.1',
    'n1/fd00::/64',
    'n1/fd00::9',
    'n1/0.0.0.0/0',
  ])
  for (const bad of ['10.3.0.0/33', 'x', '10.3.0.1/', '10.3.0', '']) {
    assert.deepEqual(addressesOf('10.3.0.1', bad).names, [], bad)
  }
})

test('a prefix is found as it is, not by an address inside it; what has no slash is no key', () => {
  const mesh = createTestMesh()
  mesh.apply(make.serviceEntry('ns1/se', { hosts: ['x.com'], addresses: ['10.3.1.7/16', '10.4.0.1'] }))
  const found = (key: string) => mesh.index.addresses.lookup?.(key).map(({ name }) => name)
  assert.deepEqual(found('/10.3.0.0/16'), ['ns1/x.com'])
  assert.deepEqual(found('/10.4.0.1'), ['ns1/x.com'])
  for (const key of ['/10.3.1.7', '/10.3.1.7/16', '/10.3.0.0', 'n1/10.4.0.1', 'x.com', '10.4.0.1', '']) {
    assert.deepEqual(found(key), [], key)
  }
})

test('allocated addresses count per host, and only where the entry takes them', () => {
  const status = {
    addresses: [
      { host: 'a.com', value: '240.240.0.1' },
      { host: 'a.com', value: '2001:2::1' },
      { host: '*.w.com', value: '240.240.0.2' },
      { host: 'other.com', value: '240.240.0.3' },
      { host: 'b.com', value: 'bad' },
    ],
  }
  const aliases = (spec: object, metadata: object = {}, settings: object = {}) => {
    const mesh = createTestMesh(settings)
    const entry = make.serviceEntry('ns1/se', { hosts: ['a.com', 'b.com', '*.w.com'], ...spec }, { ...metadata })
    mesh.apply(Object.assign(entry, { status }))
    return ['a.com', 'b.com', '*.w.com'].map((host) => mesh.index.addresses.get(`ns1/${host}`)?.aliases.join(' '))
  }
  const taken = '/240.240.0.1 /2001:2::1'
  assert.deepEqual(aliases({ resolution: 'STATIC' }), [taken, '', ''])
  assert.deepEqual(aliases({ resolution: 'DNS' }), [taken, '', ''])
  assert.deepEqual(aliases({ resolution: 'DYNAMIC_DNS' }), [taken, '', '/240.240.0.2'])
  assert.deepEqual(aliases({ resolution: 'NONE' }), ['', '', ''])
  assert.deepEqual(aliases({ resolution: 'DNS', addresses: ['10.3.0.1'] }), ['/10.3.0.1', '/10.3.0.1', '/10.3.0.1'])
  const label = (value: string) => ({ labels: { 'networking.istio.io/enable-autoallocate-ip': value } })
  assert.deepEqual(aliases({ resolution: 'DNS' }, label('false')), ['', '', ''])
  assert.deepEqual(aliases({ resolution: 'DNS' }, label('true')), [taken, '', ''])
  assert.deepEqual(aliases({ resolution: 'DNS' }, {}, { allocateAddresses: false }), ['', '', ''])
})

test('an entry as it is served', () => {
  const mesh = createTestMesh()
  mesh.apply(
    make.namespace('ns1'),
    make.serviceEntry(
      'ns1/se',
      {
        hosts: ['x.com'],
        addresses: ['10.3.0.1'],
        exportTo: ['.'],
        location: 'MESH_INTERNAL',
        subjectAltNames: ['spiffe://b', 'spiffe://a'],
        ports: [
          { number: 80, name: 'a', protocol: 'Http2', targetPort: 8080 },
          { number: 81, name: 'b', protocol: 'UDP' },
          { number: 82, name: 'http', protocol: 'TCP' },
          { number: 83, name: 'c', protocol: 'HTTPS' },
          { number: 84, name: 'd', protocol: 'MONGO' },
          { number: 85, name: 'e', protocol: 'grpc' },
          { number: 53, name: 'f', protocol: 'unknown' },
        ],
      },
      { annotations: { 'networking.istio.io/traffic-distribution': 'PREFERSAMENODE' } },
    ),
  )
  assert.deepEqual(served(mesh, 'ns1/x.com'), {
    name: 'se',
    namespace: 'ns1',
    hostname: 'x.com',
    addresses: [{ address: '10.3.0.1' }],
    ports: [
      { servicePort: 80, targetPort: 8080, appProtocol: 'HTTP2' },
      { servicePort: 81, targetPort: 81 },
      { servicePort: 82, targetPort: 82, appProtocol: 'TCP' },
      { servicePort: 83, targetPort: 83, appProtocol: 'TLS' },
      { servicePort: 84, targetPort: 84 },
      { servicePort: 85, targetPort: 85, appProtocol: 'GRPC' },
      { servicePort: 53, targetPort: 53 },
    ],
    subjectAltNames: ['spiffe://b', 'spiffe://a'],
    loadBalancing: { routingPreference: ['NETWORK', 'REGION', 'ZONE', 'SUBZONE', 'NODE'], mode: 'FAILOVER' },
    canonical: true,
  })
  mesh.apply(make.serviceEntry('ns1/se', { hosts: ['x.com'], addresses: ['10.3.0.1'], resolution: 'NONE' }))
  assert.deepEqual(served(mesh, 'ns1/x.com')?.loadBalancing, { mode: 'PASSTHROUGH', healthPolicy: 'ALLOW_ALL' })
})

test('one host name in several namespaces: each has its own, and one public one is canonical', () => {
  const mesh = createTestMesh()
  const at = (path: string, created: string) =>
    make.serviceEntry(
      path,
      { hosts: ['x.com'], addresses: ['10.3.0.1'] },
      { creationTimestamp: `${created}T00:00:00Z` },
    )
  mesh.inputs.meshConfig.set({
    serviceEntryVisibility: {
      policies: [
        { matchingRules: [{ namespaceSelector: { matchLabels: { see: 'own' } } }], visibility: 'NAMESPACE' },
        { matchingRules: [{ namespaceSelector: { matchLabels: { see: 'none' } } }], visibility: 'NONE' },
      ],
    },
  })
  mesh.apply(
    make.namespace('ns0', { see: 'none' }),
    make.namespace('ns1', { see: 'own' }),
    make.namespace('ns2'),
    make.namespace('ns3'),
    at('ns0/se', '2026-01-01'),
    at('ns1/se', '2026-01-02'),
    at('ns3/se', '2026-01-04'),
    at('ns2/se', '2026-01-04'),
    at('ns2/younger', '2026-01-05'),
  )
  const state = () =>
    Object.fromEntries(
      servedNames(mesh).map((name) => {
        const { canonical = false, visibility = 'PUBLIC', name: from } = served(mesh, name) ?? {}
        return [name, `${from} ${visibility}${canonical ? ' canonical' : ''}`]
      }),
    )
  assert.deepEqual(state(), {
    'ns1/x.com': 'se NAMESPACE',
    'ns2/x.com': 'se PUBLIC canonical',
    'ns3/x.com': 'se PUBLIC',
  })
  const found = mesh.index.addresses.lookup?.('/10.3.0.1') ?? []
  assert.deepEqual(
    found.map(({ name }) => name),
    ['ns2/x.com'],
  )
  mesh.remove('ServiceEntry/ns2/se')
  assert.deepEqual(state(), {
    'ns1/x.com': 'se NAMESPACE',
    'ns2/x.com': 'younger PUBLIC',
    'ns3/x.com': 'se PUBLIC canonical',
  })
  mesh.apply(make.namespace('ns1'))
  assert.deepEqual(state(), {
    'ns1/x.com': 'se PUBLIC canonical',
    'ns2/x.com': 'younger PUBLIC',
    'ns3/x.com': 'se PUBLIC',
  })
  assert.deepEqual(
    mesh.touched(() => mesh.apply(make.namespace('ns0'))),
    ['ns0/x.com', 'ns1/x.com'],
  )
})
