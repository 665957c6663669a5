// Kubernetes Services as they are served.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestMesh, make, served, servedNames } from './testing.ts'

const key = 'ns1/svc.ns1.svc.cluster.local'

function serve(spec: object, metadata: object = {}, namespace: object = make.namespace('ns1')) {
  const mesh = createTestMesh()
  const service = make.service('ns1/svc', '10.1.0.1', {}, { ...metadata })
  mesh.apply(
    make.namespace('istio-system', { 'topology.istio.io/network': 'n1' }),
    namespace as never,
    Object.assign(service, { spec: { ports: [{ name: 'http', port: 80, targetPort: 8080 }], ...spec } }),
  )
  return served(mesh, key)
}

test('cluster addresses are those of the list, else the single one; None and empty ones are none', () => {
  const cases: [spec: object, addresses: string[] | undefined][] = [
    [{ clusterIP: '10.1.0.1', clusterIPs: ['10.1.0.1', 'fd00::1'] }, ['10.1.0.1', 'fd00::1']],
    [{ clusterIP: '10.1.0.1' }, ['10.1.0.1']],
    [{ clusterIP: '10.1.0.1', clusterIPs: [] }, ['10.1.0.1']],
    [{ clusterIP: 'None', clusterIPs: ['None'] }, undefined],
    [{ clusterIP: '' }, undefined],
    [{}, undefined],
    [{ clusterIP: '10.1.0.1', externalIPs: ['192.0.2.1'], type: 'LoadBalancer' }, ['10.1.0.1']],
  ]
  for (const [spec, addresses] of cases) {
    const found = serve(spec)?.addresses as { network: string; address: string }[] | undefined
    assert.deepEqual(
      found?.map(({ network, address }) => `${network} ${address}`),
      addresses?.map((one) => `n1 ${one}`),
      JSON.stringify(spec),
    )
  }
})

test('address families are told by the service', () => {
  const of = (...ipFamilies: string[]) => serve({ ipFamilies })?.ipFamilies
  assert.deepEqual(of('IPv4'), 'IPV4_ONLY')
  assert.deepEqual(of('IPv6'), 'IPV6_ONLY')
  assert.deepEqual(of('IPv6', 'IPv4'), 'DUAL')
  assert.deepEqual(of(), undefined)
})

test('ports are all there in order, with the numbers and protocols they declare', () => {
  const ports = [
    { name: 'http-web', port: 80, targetPort: 8080 },
    { name: 'named', port: 81, targetPort: 'web' },
    { name: 'http-udp', port: 82, targetPort: 82, protocol: 'UDP' },
    { name: 'GRPC-api', port: 83, targetPort: 83 },
    { name: 'grpc-web', port: 84, targetPort: 84 },
    { name: 'grpc-webby', port: 85, targetPort: 85 },
    { name: 'smtp', port: 25, targetPort: 25 },
    { name: 'mysql', port: 3306, targetPort: 3306 },
    { name: 'http', port: 53, targetPort: 53 },
    { name: 'x', port: 86, targetPort: 86, appProtocol: 'kubernetes.io/h2c' },
    { name: 'http', port: 87, targetPort: 87, appProtocol: 'kubernetes.io/wss' },
    { name: 'http', port: 88, targetPort: 88, appProtocol: 'example.com/mine' },
    { name: 'tcp', port: 89, targetPort: 89, appProtocol: 'kubernetes.io/ws' },
    { name: 'https-x', port: 90, targetPort: 90 },
    { port: 27017, targetPort: 27017 },
    { name: 'http2', port: 91, targetPort: 91, appProtocol: 'HTTPS' },
  ]
  const found = serve({ ports })?.ports as { servicePort: number; targetPort?: number; appProtocol?: string }[]
  assert.deepEqual(
    found.map(({ servicePort, targetPort = 0, appProtocol = '-' }) => `${servicePort} ${targetPort} ${appProtocol}`),
    [
      '80 8080 HTTP11',
      '81 0 -',
      '82 82 -',
      '83 83 GRPC',
      '84 84 -',
      '85 85 -',
      '25 25 TCP',
      '3306 3306 -',
      '53 53 HTTP11',
      '86 86 HTTP2',
      '87 87 TLS',
      '88 88 -',
      '89 89 HTTP11',
      '90 90 TLS',
      '27017 27017 TCP',
      '91 91 TLS',
    ],
  )
})

test('where endpoints are preferred is told by the service, its annotation, its namespace, in this order', () => {
  const annotation = 'networking.istio.io/traffic-distribution'
  const [zone, node] = [
    { routingPreference: ['NETWORK', 'REGION', 'ZONE'], mode: 'FAILOVER' },
    { routingPreference: ['NETWORK', 'REGION', 'ZONE', 'SUBZONE', 'NODE'], mode: 'FAILOVER' },
  ]
  const local = { routingPreference: ['NODE'], mode: 'STRICT' }
  const inNamespace = Object.assign(make.namespace('ns1'), {
    metadata: { name: 'ns1', annotations: { [annotation]: 'PreferSameNode' } },
  })
  const at = (value: string) => ({ annotations: { [annotation]: value } })
  const cases: [spec: object, metadata: object, expected: unknown][] = [
    [{}, {}, node],
    [{}, at('preferclose'), zone],
    [{}, at('Any'), undefined],
    [{}, at(''), node],
    [{ trafficDistribution: 'PreferSameZone' }, at('PreferSameNode'), zone],
    [{ trafficDistribution: 'PreferSameNode' }, {}, node],
    [{ trafficDistribution: 'PreferClose', internalTrafficPolicy: 'Local' }, {}, local],
    [{ internalTrafficPolicy: 'Cluster' }, {}, node],
    [{ publishNotReadyAddresses: true, internalTrafficPolicy: 'Local' }, {}, { ...local, healthPolicy: 'ALLOW_ALL' }],
    [{ publishNotReadyAddresses: true }, at('Any'), { healthPolicy: 'ALLOW_ALL' }],
  ]
  for (const [spec, metadata, expected] of cases) {
    assert.deepEqual(serve(spec, metadata, inNamespace)?.loadBalancing, expected, JSON.stringify([spec, metadata]))
  }
})

test('what is not on the wire moves no service', () => {
  const mesh = createTestMesh()
  const pods = [make.pod('ns1/a', '10.0.0.1', { app: 'a' }), make.pod('ns1/b', '10.0.0.2', { app: 'b' })]
  mesh.apply(make.namespace('ns1'), ...pods, make.service('ns1/svc', '10.1.0.1', { app: 'a' }))
  assert.deepEqual(
    mesh.touched(() => mesh.apply(make.service('ns1/svc', '10.1.0.1', { app: 'b' }))),
    ['c1//Pod/ns1/a', 'c1//Pod/ns1/b'],
  )
  const annotated = {
    annotations: { note: 'x' },
    resourceVersion: '9',
    generation: 2,
    creationTimestamp: '2026-01-01T00:00:00Z',
  }
  assert.deepEqual(
    mesh.touched(() => mesh.apply(make.service('ns1/svc', '10.1.0.1', { app: 'b' }, annotated))),
    [],
  )
})

test('names of something else are no services', () => {
  const mesh = createTestMesh()
  const external = Object.assign(make.service('ns1/svc', '10.1.0.1', { app: 'a' }), {
    spec: { type: 'ExternalName', externalName: 'x.com', selector: { app: 'a' }, ports: [{ port: 80 }] },
  })
  mesh.apply(external, make.pod('ns1/a', '10.0.0.1', { app: 'a' }))
  assert.deepEqual(servedNames(mesh), ['c1//Pod/ns1/a'])
  assert.equal(served(mesh, 'c1//Pod/ns1/a')?.services, undefined)
  // The host name is free for an entry.
  mesh.apply(make.serviceEntry('ns1/se', { hosts: ['svc.ns1.svc.cluster.local'], addresses: ['10.3.0.1'] }))
  assert.equal(served(mesh, key)?.name, 'se')
})
