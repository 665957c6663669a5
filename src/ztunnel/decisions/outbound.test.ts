import assert from 'node:assert/strict'
import { test } from 'node:test'
import { meshOf } from '../../../test/support/mesh.ts'
import type { MeshState } from '../state/index.ts'
import { routeOutbound } from './outbound.ts'
import type { OutboundDecision } from './types.ts'

const client =
  '{uid: client, name: client, namespace: ns, serviceAccount: client, trustDomain: td, workloadIps: [10.0.0.1], services: {}}'

function route(state: MeshState, to: string, port = 80): OutboundDecision {
  const source = state.workload('client')
  assert.ok(source)
  return routeOutbound(
    state,
    { source, from: { ip: '10.0.0.1', port: 4000 }, to: { ip: to, port } },
    { network: '', hbonePort: 15008, illegalPorts: new Set([15001, 15006, 15008]), random: () => 0 },
  )
}

const errorOf = (decision: OutboundDecision): string | undefined =>
  decision.kind === 'refuse' ? decision.error : undefined

test('an address that is both a VIP and a pod address is the service, for the waypoint and for the backend alike', () => {
  const state = meshOf(`
workloads:
- ${client}
- {uid: pod, namespace: ns, serviceAccount: pod, trustDomain: td, workloadIps: [10.0.0.2], protocol: HBONE, services: {ns/s.example: {}}, waypoint: {destination: /10.0.0.99, hboneMtlsPort: 15008}}
services:
- {name: s, namespace: ns, hostname: s.example, vips: [/10.0.0.2], ports: {80: 8080}}`)
  const decision = route(state, '10.0.0.2')
  assert.equal(decision.kind, 'hbone')
  assert.equal(decision.kind === 'hbone' && decision.authority, '10.0.0.2:8080')
})

test('a backend known by host name only is resolved when connecting', () => {
  const state = meshOf(`
workloads:
- ${client}
- {uid: far, namespace: ns, serviceAccount: far, trustDomain: td, hostname: far.example, workloadIps: [], services: {ns/s.example: {}}}
services:
- {name: s, namespace: ns, hostname: s.example, vips: [/10.1.0.1], ports: {80: 8080}}`)
  const plain = route(state, '10.1.0.1')
  assert.deepEqual(
    plain.kind === 'tcp' && plain.target.kind === 'hostname' && [plain.target.port, plain.target.family],
    [8080, 4],
  )
  state.apply({ workloads: [...state.workloads()].map((one) => ({ ...one, protocol: 'HBONE' as const })) })
  const meshed = route(state, '10.1.0.1')
  assert.equal(meshed.kind, 'hbone')
  if (meshed.kind !== 'hbone') return
  assert.deepEqual([meshed.authority, meshed.authorityPort], ['far.example:8080', 8080])
  assert.equal(meshed.target.kind === 'hostname' && meshed.target.port, 15008)
})

test('a workload of another network is reached through a service only', () => {
  const state = meshOf(`
workloads:
- ${client}
- {uid: far, namespace: ns, network: other, workloadIps: [10.0.0.2], services: {ns/s.example: {}}}
services:
- {name: s, namespace: ns, hostname: s.example, vips: [/10.1.0.1], ports: {80: 8080}}`)
  assert.equal(errorOf(route(state, '10.1.0.1')), 'no valid routing destination for workload: far')
  assert.equal(route(state, '10.0.0.2').kind, 'tcp')
})

test('the inner tunnel of a double HBONE trusts the names of the service only', () => {
  const state = meshOf(`
workloads:
- ${client}
- {uid: far, namespace: ns, serviceAccount: far, trustDomain: td, network: other, workloadIps: [], networkGateway: {destination: other/10.9.0.1, hboneMtlsPort: 15008}, services: {ns/s.example: {}}}
- {uid: gateway, namespace: ns, serviceAccount: gateway, trustDomain: td, network: other, workloadIps: [10.9.0.1], services: {}}
services:
- {name: s, namespace: ns, hostname: s.example, vips: [/10.1.0.1], ports: {80: 8080}}`)
  const decision = route(state, '10.1.0.1')
  assert.equal(decision.kind, 'double-hbone')
  if (decision.kind !== 'double-hbone') return
  assert.deepEqual(decision.finalIdentities, [])
  assert.deepEqual(decision.expectedIdentities, ['spiffe://td/ns/ns/sa/gateway'])
  assert.equal(decision.authority, 's.example:80')
})

const refusals: readonly (readonly [what: string, mesh: string, to: string, error: string])[] = [
  [
    'a waypoint by a host name nobody has',
    'services: [{name: s, namespace: ns, hostname: s.example, vips: [/10.1.0.1], ports: {}, waypoint: {destination: ns/w.example, hboneMtlsPort: 15008}}]',
    '10.1.0.1',
    'unknown waypoint: waypoint w.example not found',
  ],
  [
    'weighted waypoints that are unknown',
    'services: [{name: s, namespace: ns, hostname: s.example, vips: [/10.1.0.1], ports: {}, weightedWaypoints: [{destination: {destination: /10.7.7.7, hboneMtlsPort: 15008}, weight: 1}]}]',
    '10.1.0.1',
    'unknown waypoint: waypoint 10.7.7.7:15008 not found',
  ],
  [
    'a service of the wrong address family only',
    'services: [{name: s, namespace: ns, hostname: s.example, vips: [/10.1.0.1], ports: {80: 80}, ipFamilies: IPv4}]\nworkloads: [WL]',
    '10.1.0.1',
    'no valid routing destination for workload: six',
  ],
]
for (const [what, mesh, to, error] of refusals) {
  test(`refused, never passed through: ${what}`, () => {
    const six = "{uid: six, namespace: ns, workloadIps: ['fd00::1'], services: {ns/s.example: {}}}"
    const text = mesh.includes('WL') ? mesh.replace('WL', `${client}, ${six}`) : `${mesh}\nworkloads: [${client}]`
    assert.equal(errorOf(route(meshOf(text), to)), error)
  })
}

const service = (more: string) =>
  `{name: s, namespace: ns, hostname: s.example, vips: [/10.1.0.1], ports: {80: 8080}${more}}`
const pod = (more: string) =>
  `{uid: pod, namespace: ns, serviceAccount: pod, trustDomain: td, workloadIps: [10.0.0.2], services: {ns/s.example: {}}${more}}`
const waypoint =
  '{uid: way, namespace: ns, serviceAccount: way, trustDomain: td, workloadIps: [10.0.0.9], services: {}}'
const toWaypoint = ', waypoint: {destination: /10.0.0.9, hboneMtlsPort: 15008}'
const toFarWaypoint = ', waypoint: {destination: other/10.9.0.1, hboneMtlsPort: 15008}'
const farPod =
  '{uid: pod, namespace: ns, network: other, workloadIps: [], networkGateway: {destination: other/10.9.0.1, hboneMtlsPort: 15008}, services: {ns/s.example: {}}}'
const gateway = '{uid: gw, namespace: ns, network: other, workloadIps: [10.9.0.1], services: {}}'

const vip = '10.1.0.1'
const podIp = '10.0.0.2'
const why: readonly (readonly [kind: string, to: string, workloads: string[], services: string[], reason: string])[] = [
  ['tcp', '192.0.2.1', [], [], 'no service or workload has the address: passed through'],
  [
    'tcp',
    vip,
    [],
    [service(', loadBalancer: {mode: Passthrough, routingPreferences: [], healthPolicy: AllowAll}')],
    'service s.example passes its addresses through',
  ],
  ['tcp', podIp, [pod('')], [], 'pod by its address, outside the mesh: TCP'],
  ['tcp', vip, [pod('')], [service('')], 'pod by service s.example, outside the mesh: TCP'],
  ['hbone', podIp, [pod(', protocol: HBONE')], [], 'pod by its address: HBONE'],
  ['hbone', vip, [pod(', protocol: HBONE')], [service('')], 'pod by service s.example: HBONE'],
  ['hbone', podIp, [pod(toWaypoint), waypoint], [], 'workload pod has a waypoint: way'],
  ['hbone', vip, [pod(''), waypoint], [service(toWaypoint)], 'service s.example has a waypoint: way'],
  ['double-hbone', vip, [farPod, gateway], [service('')], 'pod is on network other: through gateway gw'],
  ['refuse', vip, [], [service('')], 'no healthy upstream: 10.1.0.1:80'],
  ['refuse', vip, [farPod], [service('')], 'unknown network gateway: network gateway 10.9.0.1:15008 not found'],
  ['refuse', podIp, [pod(toFarWaypoint), gateway], [], 'no service for target address: 10.0.0.2:80'],
  ['refuse', '127.0.0.1', [], [], 'attempted recursive call to ourselves'],
]
for (const [kind, to, workloads, services, reason] of why) {
  test(`a decision says why: ${kind}, ${reason}`, () => {
    const state = meshOf(`workloads: [${[client, ...workloads].join()}]\nservices: [${services.join()}]`)
    const decision = route(state, to, to === '127.0.0.1' ? 15001 : 80)
    assert.deepEqual([decision.kind, decision.kind === 'refuse' ? decision.error : decision.reason], [kind, reason])
  })
}

test('a network gateway by a host name nobody has is named in the refusal', () => {
  const far = farPod.replace('other/10.9.0.1', 'ns/gw.example')
  const state = meshOf(`workloads: [${client}, ${far}]\nservices: [${service('')}]`)
  assert.equal(errorOf(route(state, vip)), 'unknown network gateway: network gateway gw.example not found')
})
