// Waypoints of services and workloads as they are served, and what the owners of the objects are told.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionsOf, createTestMesh, make, served, type TestMesh } from './testing.ts'

const svc = 'ns1/svc.ns1.svc.cluster.local'
const pod = 'c1//Pod/ns1/a'
const use = (name: string, more: object = {}) => ({ 'istio.io/use-waypoint': name, ...more })
const hostname = [{ type: 'Hostname', value: 'wp.example.com' }]

function waypointOf(mesh: TestMesh, name: string): string | undefined {
  const waypoint = served(mesh, name)?.waypoint as
    | {
        hostname?: { namespace: string; hostname: string }
        address?: { network?: string; address: string }
        hboneMtlsPort: number
      }
    | undefined
  if (waypoint === undefined) return undefined
  const { hostname: host, address } = waypoint
  const place =
    host === undefined ? `${address?.network ?? ''}/${address?.address}` : `${host.namespace}/${host.hostname}`
  return `${place}:${waypoint.hboneMtlsPort}`
}

const gateway = (metadata: object = {}, spec: object = {}, addresses: object[] = hostname, path = 'ns1/wp') =>
  make.gateway(path, { ...metadata }, { ...spec }, addresses as never)
const service = (labels: object, annotations: object = {}) =>
  make.service('ns1/svc', '10.1.0.1', {}, { labels, annotations })

test('a Gateway of any class with a usable address is a waypoint: its first host name, else its first address', () => {
  const cases: [addresses: object[], expected: string | undefined][] = [
    [hostname, 'ns1/wp.example.com:15008'],
    [[{ type: 'IPAddress', value: '10.5.0.1' }, ...hostname], 'ns1/wp.example.com:15008'],
    [[{ value: '10.5.0.1' }], 'n1/10.5.0.1:15008'],
    [
      [
        { type: 'IPAddress', value: 'x' },
        { type: 'IPAddress', value: 'fd00::1' },
      ],
      'n1/fd00::1:15008',
    ],
    [[{ type: 'NamedAddress', value: '10.5.0.1' }], undefined],
    [[], undefined],
  ]
  for (const [addresses, expected] of cases) {
    const mesh = createTestMesh()
    mesh.apply(
      make.namespace('istio-system', { 'topology.istio.io/network': 'n1' }),
      gateway({}, { gatewayClassName: 'any' }, addresses),
      service(use('wp')),
    )
    assert.equal(waypointOf(mesh, svc), expected, JSON.stringify(addresses))
    const told = conditionsOf(mesh, 'Service/ns1/svc')[0] ?? ''
    assert.match(told, expected === undefined ? /False WaypointIsNotReady/ : /True WaypointAccepted/)
  }
})

test('what a waypoint is for is told by the Gateway, else by its class, else it is for services', () => {
  const label = (value: string) => ({ labels: { 'istio.io/waypoint-for': value } })
  const cases: [own: object, ofClass: object, service: boolean, workload: boolean][] = [
    [{}, {}, true, false],
    [{}, label('workload'), false, true],
    [label('all'), label('workload'), true, true],
    [label('none'), label('all'), false, false],
    [label('service'), label('all'), true, false],
  ]
  for (const [own, ofClass, forService, forWorkload] of cases) {
    const mesh = createTestMesh()
    mesh.apply(
      make.gatewayClass('istio-waypoint', { ...ofClass }),
      gateway(own),
      service(use('wp')),
      make.pod('ns1/a', '10.0.0.1', use('wp')),
    )
    assert.deepEqual(
      [waypointOf(mesh, svc) !== undefined, waypointOf(mesh, pod) !== undefined],
      [forService, forWorkload],
    )
    // The class may come later, and go.
    mesh.remove('GatewayClass//istio-waypoint')
    mesh.apply(make.gatewayClass('istio-waypoint', { ...ofClass }))
    assert.equal(waypointOf(mesh, pod) !== undefined, forWorkload)
  }
})

test('which namespaces a waypoint admits is told by its listener', () => {
  const routes = (namespaces: object, port = 15008, protocol = 'HBONE') => ({
    name: `l${port}`,
    port,
    protocol,
    allowedRoutes: { namespaces },
  })
  const all = { from: 'All' }
  const bound = (value: string) => ({ annotations: { 'ambient.istio.io/waypoint-inbound-binding': value } })
  const cases: [listeners: object[], metadata: object, admits: boolean][] = [
    [[routes(all)], {}, true],
    [[routes({ from: 'Same' })], {}, false],
    [[routes({ from: 'None' })], {}, false],
    [[routes({})], {}, false],
    [[routes({ from: 'Selector', selector: { matchLabels: { team: 'a' } } })], {}, true],
    [[routes({ from: 'Selector', selector: { matchLabels: { team: 'b' } } })], {}, false],
    [[routes({ from: 'Selector', selector: {} })], {}, true],
    [[routes({ from: 'Selector', selector: { matchExpressions: [{ key: 'team', operator: 'Exists' }] } })], {}, true],
    [[routes(all, 15009)], {}, false],
    [[routes(all, 15008, 'HTTP')], {}, false],
    [[routes({ from: 'Same' }), routes(all, 15088, 'istio.io/PROXY')], bound('PROXY/15088'), true],
    [[routes(all), routes({ from: 'Same' }, 15088, 'istio.io/PROXY')], bound('PROXY'), false],
    [[routes({ from: 'Same' }), routes(all, 15088, 'istio.io/PROXY')], bound('PROXY'), true],
    [[routes({ from: 'Same' }), routes(all, 15088, 'istio.io/PROXY')], bound('OTHER/15088'), false],
    [[routes(all), routes({ from: 'Same' }, 15088, 'istio.io/PROXY')], bound('NONE'), true],
    [[], {}, false],
  ]
  for (const [listeners, metadata, admits] of cases) {
    const mesh = createTestMesh()
    mesh.apply(
      make.namespace('ns1', { team: 'a' }),
      gateway(metadata, { listeners }, hostname, 'ns2/wp'),
      service(use('wp', { 'istio.io/use-waypoint-namespace': 'ns2' })),
    )
    assert.equal(waypointOf(mesh, svc) !== undefined, admits, JSON.stringify([listeners, metadata]))
    assert.deepEqual(conditionsOf(mesh, 'Service/ns1/svc'), [
      admits
        ? 'istio.io/WaypointBound True WaypointAccepted: Successfully attached to waypoint ns2/wp'
        : 'istio.io/WaypointBound False AttachmentDenied: we are not permitted to attach to waypoint "ns2/wp" (missing allowedRoutes?)',
    ])
  }
  const mesh = createTestMesh()
  const listeners = [routes({ from: 'Selector', selector: { matchLabels: { team: 'a' } } })]
  mesh.apply(
    gateway({}, { listeners }, hostname, 'ns2/wp'),
    service(use('wp', { 'istio.io/use-waypoint-namespace': 'ns2' })),
  )
  assert.equal(waypointOf(mesh, svc), undefined)
  mesh.apply(make.namespace('ns1', { team: 'a' }))
  assert.ok(waypointOf(mesh, svc))
  mesh.apply(make.namespace('ns1', { team: 'b' }))
  assert.equal(waypointOf(mesh, svc), undefined)
})

test('the namespace speaks for its objects that say nothing themselves', () => {
  const mesh = createTestMesh()
  mesh.apply(
    make.namespace('ns1', use('wp')),
    gateway({ labels: { 'istio.io/waypoint-for': 'all' } }),
    gateway({}, {}, hostname, 'ns1/other'),
    service({}),
    make.service('ns1/off', '10.1.0.2', {}, { labels: use('none') }),
    make.service('ns1/missing', '10.1.0.3', {}, { labels: use('gone') }),
    make.service('ns1/elsewhere', '10.1.0.4', {}, { labels: use('other') }),
    make.serviceEntry('ns1/se', {
      hosts: ['x.com'],
      addresses: ['10.3.0.1'],
      endpoints: [{ address: '10.4.0.1' }, { address: '10.4.0.2', labels: use('none') }],
    }),
    make.serviceEntry('ns1/dns', { hosts: ['y.com'], resolution: 'DNS' }),
    make.workloadEntry('ns1/vm', { address: '10.2.0.1' }),
    make.pod('ns1/a', '10.0.0.1'),
    make.slice('ns1/s', 'svc', [{ addresses: ['10.5.0.1'] }]),
  )
  const of = (name: string) => waypointOf(mesh, `ns1/${name}.ns1.svc.cluster.local`)
  const wp = 'ns1/wp.example.com:15008'
  assert.deepEqual([of('svc'), of('off'), of('missing'), of('elsewhere')], [wp, undefined, undefined, wp])
  assert.deepEqual(
    ['ns1/x.com', 'ns1/y.com', pod, 'c1/networking.istio.io/WorkloadEntry/ns1/vm'].map((name) =>
      waypointOf(mesh, name),
    ),
    [wp, wp, wp, wp],
  )
  const endpoint = (rest: string) => waypointOf(mesh, `c1/networking.istio.io/ServiceEntry/ns1/${rest}`)
  assert.deepEqual(['se/10.4.0.1', 'se/10.4.0.2', 'dns/y.com'].map(endpoint), [wp, undefined, undefined])
  assert.equal(waypointOf(mesh, 'c1/discovery.k8s.io/EndpointSlice/ns1/s/10.5.0.1'), undefined)
  assert.deepEqual(conditionsOf(mesh, 'Service/ns1/off'), [])

  mesh.apply(make.namespace('ns1', use('none')))
  assert.deepEqual(
    [of('svc'), of('off'), of('elsewhere'), waypointOf(mesh, pod)],
    [undefined, undefined, wp, undefined],
  )
  assert.deepEqual(conditionsOf(mesh, 'Service/ns1/svc'), [])
  mesh.apply(make.namespace('ns1', use('wp')))
  mesh.remove('Namespace//ns1')
  assert.deepEqual([of('svc'), of('elsewhere')], [undefined, wp])
})

test('a namespace may name a waypoint elsewhere; each object alone does for itself', () => {
  const mesh = createTestMesh()
  const listeners = [{ name: 'l', port: 15008, protocol: 'HBONE', allowedRoutes: { namespaces: { from: 'All' } } }]
  mesh.apply(
    make.namespace('ns1', use('wp', { 'istio.io/use-waypoint-namespace': 'ns2' })),
    gateway({}, { listeners }, hostname, 'ns2/wp'),
    service({}),
    // The namespace of the reference is not inherited apart from its name.
    make.service('ns1/own', '10.1.0.2', {}, { labels: use('wp') }),
  )
  assert.equal(waypointOf(mesh, svc), 'ns2/wp.example.com:15008')
  assert.equal(waypointOf(mesh, 'ns1/own.ns1.svc.cluster.local'), undefined)
  assert.match(conditionsOf(mesh, 'Service/ns1/own')[0] ?? '', /WaypointIsNotReady: waypoint "ns1\/wp" is not ready/)
})

test('a traffic type that does not fit is told, but not to workloads that only inherit it', () => {
  const mesh = createTestMesh()
  const vm = (labels: object = {}) => make.workloadEntry('ns1/vm', { address: '10.2.0.1', labels })
  mesh.apply(make.namespace('ns1', use('wp')), gateway(), vm(), service({}))
  assert.deepEqual(conditionsOf(mesh, 'WorkloadEntry/ns1/vm'), [])
  mesh.apply(vm(use('wp')))
  assert.deepEqual(conditionsOf(mesh, 'WorkloadEntry/ns1/vm'), [
    'istio.io/WaypointBound False UnsupportedTrafficType: attempting to bind to traffic type "workload" which the waypoint "ns1/wp" does not support',
  ])
  mesh.apply(gateway({ labels: { 'istio.io/waypoint-for': 'workload' } }))
  assert.deepEqual(conditionsOf(mesh, 'WorkloadEntry/ns1/vm'), [
    'istio.io/WaypointBound True WaypointAccepted: Successfully attached to waypoint ns1/wp',
  ])
  assert.deepEqual(conditionsOf(mesh, 'Service/ns1/svc'), [
    'istio.io/WaypointBound False UnsupportedTrafficType: attempting to bind to traffic type "service" which the waypoint "ns1/wp" does not support',
  ])
  mesh.apply(vm())
  mesh.remove('Gateway/ns1/wp')
  assert.deepEqual(conditionsOf(mesh, 'WorkloadEntry/ns1/vm'), [
    'istio.io/WaypointBound False WaypointIsNotReady: waypoint "ns1/wp" is not ready',
  ])
})

test('an instance of a waypoint has none itself, and says how it takes its traffic', () => {
  const binding = (value: string) => ({ annotations: { 'ambient.istio.io/waypoint-inbound-binding': value } })
  const instance = make.pod('ns1/a', '10.0.0.1', { 'gateway.networking.k8s.io/gateway-name': 'wp', ...use('wp') })
  const tunnel = (own: object, ofClass: object = {}) => {
    const mesh = createTestMesh()
    mesh.apply(
      make.gatewayClass('istio-waypoint', { ...ofClass }),
      gateway({ labels: { 'istio.io/waypoint-for': 'all' }, ...own }),
      instance,
    )
    assert.equal(waypointOf(mesh, pod), undefined)
    return served(mesh, pod)?.applicationTunnel
  }
  assert.equal(tunnel({}), undefined)
  assert.deepEqual(tunnel(binding('PROXY/15088')), { protocol: 'PROXY', port: 15088 })
  assert.deepEqual(tunnel(binding('PROXY')), { protocol: 'PROXY' })
  assert.deepEqual(tunnel(binding('NONE/15008')), { port: 15008 })
  assert.deepEqual(tunnel(binding('PROXY/x')), { protocol: 'PROXY' })
  assert.deepEqual(tunnel(binding('PROXY/70000')), { protocol: 'PROXY' })
  assert.deepEqual(tunnel(binding('proxy/15088')), undefined)
  assert.deepEqual(tunnel({}, binding('PROXY/1')), { protocol: 'PROXY', port: 1 })
  assert.deepEqual(tunnel(binding('NONE/2'), binding('PROXY/1')), { port: 2 })

  const mesh = createTestMesh()
  const named = make.pod('ns1/a', '10.0.0.1', { 'gateway.networking.k8s.io/gateway-name': 'other', ...use('wp') })
  mesh.apply(gateway({ labels: { 'istio.io/waypoint-for': 'all' } }), named)
  assert.ok(waypointOf(mesh, pod), 'the name of a Gateway that is no waypoint changes nothing')
})

test('a canary takes its share beside the primary, and whatever is wrong with it leaves the primary alone', () => {
  const canary = (name: string, more: object = {}) => use('wp', { 'istio.io/use-waypoint-canary': name, ...more })
  const weight = (value: string) => ({ 'istio.io/use-waypoint-canary-weight': value })
  const weights = (labels: object, annotations: object, namespace: object = {}) => {
    const mesh = createTestMesh()
    mesh.apply(
      Object.assign(make.namespace('ns1'), { metadata: { name: 'ns1', ...namespace } }),
      gateway(),
      gateway({}, {}, hostname, 'ns1/next'),
      gateway({ labels: { 'istio.io/waypoint-for': 'workload' } }, {}, hostname, 'ns1/workloads'),
      gateway({}, {}, hostname, 'ns2/next'),
      service(labels, annotations),
    )
    const found = served(mesh, svc)?.weightedWaypoints as { weight?: number }[] | undefined
    const [, told = ''] =
      /Canary waypoint not attached: (.*)/.exec(conditionsOf(mesh, 'Service/ns1/svc')[0] ?? '') ?? []
    return [found?.map((one) => one.weight ?? 0), told]
  }
  assert.deepEqual(weights(canary('next'), weight('30')), [[70, 30], ''])
  assert.deepEqual(weights(canary('next'), {}), [[100, 0], ''])
  assert.deepEqual(weights(canary('next'), weight('100')), [[0, 100], ''])
  assert.deepEqual(weights(canary('none'), weight('30')), [undefined, ''])
  assert.deepEqual(weights(canary(''), weight('30')), [undefined, ''])
  const invalid = 'canary waypoint "ns1/next" has an invalid weight; must be an integer in [0,100]'
  for (const bad of ['101', '-1', '5.5', 'x', '1e1'])
    assert.deepEqual(weights(canary('next'), weight(bad)), [undefined, invalid])
  assert.deepEqual(weights(canary('wp'), weight('x')), [
    undefined,
    'canary waypoint "ns1/wp" must differ from the primary waypoint',
  ])
  assert.deepEqual(weights(canary('gone'), {}), [undefined, 'waypoint "ns1/gone" is not ready'])
  assert.deepEqual(weights(canary('next', { 'istio.io/use-waypoint-canary-namespace': 'ns2' }), {}), [
    undefined,
    'we are not permitted to attach to waypoint "ns2/next" (missing allowedRoutes?)',
  ])
  assert.deepEqual(weights(canary('workloads'), {}), [
    undefined,
    'attempting to bind to traffic type "service" which the waypoint "ns1/workloads" does not support',
  ])
  const inherited = { labels: canary('next'), annotations: weight('20') }
  assert.deepEqual(weights({}, {}, inherited), [[80, 20], ''])
  assert.deepEqual(weights({}, weight('10'), inherited), [[90, 10], ''])
  assert.deepEqual(weights({ 'istio.io/use-waypoint-canary': 'none' }, {}, inherited), [undefined, ''])
  assert.deepEqual(weights(use('wp'), {}, inherited), [undefined, ''])
  assert.deepEqual(weights(use('none'), {}, inherited), [undefined, ''])
})

test('an entry seen only in its namespace has neither waypoint nor canary elsewhere', () => {
  const mesh = createTestMesh()
  const listeners = [{ name: 'l', port: 15008, protocol: 'HBONE', allowedRoutes: { namespaces: { from: 'All' } } }]
  mesh.inputs.meshConfig.set({ serviceEntryVisibility: { defaultVisibility: 'NAMESPACE' } })
  const entry = (labels: object) => make.serviceEntry('ns1/se', { hosts: ['x.com'] }, { labels })
  const forbidden =
    'cannot bind to waypoint "ns2/wp" in another namespace: cross-namespace waypoint binding is not permitted for a ServiceEntry with NAMESPACE visibility'
  const applied =
    'istio.io/VisibilityApplied True Namespace: ServiceEntry is visible only within its own namespace (NAMESPACE), per mesh serviceEntryVisibility.'
  mesh.apply(make.namespace('ns1'), gateway(), gateway({}, { listeners }, hostname, 'ns2/wp'))
  mesh.apply(entry(use('wp', { 'istio.io/use-waypoint-namespace': 'ns2' })))
  assert.equal(waypointOf(mesh, 'ns1/x.com'), undefined)
  assert.deepEqual(conditionsOf(mesh, 'ServiceEntry/ns1/se'), [
    `istio.io/WaypointBound False CrossNamespaceWaypointForbidden: ${forbidden}`,
    applied,
  ])
  mesh.apply(
    entry(use('wp', { 'istio.io/use-waypoint-canary': 'wp', 'istio.io/use-waypoint-canary-namespace': 'ns2' })),
  )
  assert.equal(waypointOf(mesh, 'ns1/x.com'), 'ns1/wp.example.com:15008')
  assert.equal(served(mesh, 'ns1/x.com')?.weightedWaypoints, undefined)
  assert.deepEqual(conditionsOf(mesh, 'ServiceEntry/ns1/se'), [
    `istio.io/WaypointBound True WaypointAccepted: Successfully attached to waypoint ns1/wp. Canary waypoint not attached: ${forbidden}`,
    applied,
  ])
})

test('whether ingress takes the waypoint is told by the object, else by its namespace, and in the condition', () => {
  const label = (value: string) => ({ 'istio.io/ingress-use-waypoint': value })
  const cases: [own: object, namespace: object, ingress: boolean | undefined, told: string][] = [
    [{}, {}, undefined, ''],
    [label('true'), {}, true, '. Ingress traffic will traverse the waypoint'],
    [label('T'), {}, true, '. Ingress traffic will traverse the waypoint'],
    [{}, label('1'), true, '. Ingress traffic will traverse the waypoint'],
    [
      label('false'),
      label('true'),
      undefined,
      '. Ingress traffic is not using the waypoint, set the istio.io/ingress-use-waypoint label to true if desired.',
    ],
    [
      label('yes'),
      {},
      undefined,
      '. Ingress traffic is not using the waypoint, set the istio.io/ingress-use-waypoint label to true if desired.',
    ],
  ]
  for (const [own, namespace, ingress, told] of cases) {
    const mesh = createTestMesh()
    mesh.apply(make.namespace('ns1', { ...namespace }), gateway(), service(use('wp', own)))
    assert.equal(served(mesh, svc)?.ingressUseWaypoint, ingress)
    assert.deepEqual(conditionsOf(mesh, 'Service/ns1/svc'), [
      `istio.io/WaypointBound True WaypointAccepted: Successfully attached to waypoint ns1/wp${told}`,
    ])
    mesh.remove('Gateway/ns1/wp')
    assert.equal(served(mesh, svc)?.ingressUseWaypoint, undefined)
  }
})

test('entries that work only through a waypoint say so while they have none', () => {
  const wildcard =
    'istio.io/WaypointMissing True NoWaypointForWildcardService: ServiceEntry will not apply until it is bound to a valid waypoint.'
  const racing =
    'istio.io/WaypointMissing True NoWaypointForRacingConnectStrategy: ServiceEntry has a non-default connect strategy but no waypoint bound. A waypoint is required for connect strategies to take effect for ambient clients.'
  const race = { annotations: { 'istio.io/connect-strategy': 'race_first_tcp_connect' } }
  const told = (hosts: string[], metadata: object = {}, others: object[] = []) => {
    const mesh = createTestMesh()
    mesh.apply(
      make.serviceEntry('ns1/se', { hosts }, { creationTimestamp: '2026-02-01T00:00:00Z', ...metadata }),
      ...(others as []),
    )
    return conditionsOf(mesh, 'ServiceEntry/ns1/se')
  }
  assert.deepEqual(told(['x.com']), [])
  assert.deepEqual(told(['x.com', '*.y.com']), [wildcard])
  assert.deepEqual(told(['*.y.com'], race), [racing])
  assert.deepEqual(told(['x.com'], race), [racing])
  assert.deepEqual(told(['*.y.com'], { labels: use('wp'), ...race }, [gateway()]), [
    'istio.io/WaypointBound True WaypointAccepted: Successfully attached to waypoint ns1/wp',
  ])
  assert.deepEqual(told(['*.y.com'], { labels: use('wp') }), [
    'istio.io/WaypointBound False WaypointIsNotReady: waypoint "ns1/wp" is not ready',
    wildcard,
  ])
  // What is not served is told nothing.
  const older = make.serviceEntry('ns1/older', { hosts: ['*.y.com'] }, { creationTimestamp: '2026-01-01T00:00:00Z' })
  assert.deepEqual(told(['*.y.com'], {}, [older]), [])
  assert.deepEqual(told(['*.y.com', 'x.com'], {}, [older]), [wildcard])
})
