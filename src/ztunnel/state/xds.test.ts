import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { workload as proto, security } from '../../proto/index.ts'
import { authorize } from '../decisions/index.ts'
import { decodeAddress } from './decode-address.ts'
import { decodePolicy } from './decode-policy.ts'
import { StateError } from './errors.ts'
import { createMeshState } from './store.ts'
import { addressTypeUrl, authorizationTypeUrl, createDeltaReceiver } from './xds.ts'

const ip = Uint8Array.of(10, 0, 0, 1)

type WorkloadInit = MessageInitShape<typeof proto.WorkloadSchema>
type ServiceInit = MessageInitShape<typeof proto.ServiceSchema>
type PolicyInit = MessageInitShape<typeof security.AuthorizationSchema>

const workloadBody = (value: WorkloadInit): Uint8Array =>
  toBinary(
    proto.AddressSchema,
    create(proto.AddressSchema, { type: { case: 'workload', value: create(proto.WorkloadSchema, value) } }),
  )
const serviceBody = (value: ServiceInit): Uint8Array =>
  toBinary(
    proto.AddressSchema,
    create(proto.AddressSchema, { type: { case: 'service', value: create(proto.ServiceSchema, value) } }),
  )
const policyBody = (value: PolicyInit): Uint8Array =>
  toBinary(security.AuthorizationSchema, create(security.AuthorizationSchema, value))
const matching = (match: MessageInitShape<typeof security.MatchSchema>): PolicyInit => ({
  name: 'p',
  namespace: 'ns',
  scope: security.Scope.NAMESPACE,
  groups: [{ rules: [{ matches: [match] }] }],
})

test('a workload with nothing set gets the defaults of the wire format', () => {
  const decoded = decodeAddress(workloadBody({ uid: 'u' }))
  assert.equal(decoded.kind, 'workload')
  if (decoded.kind !== 'workload') return
  const { trustDomain, serviceAccount, clusterId, capacity, protocol, status } = decoded.workload
  assert.deepEqual(
    { trustDomain, serviceAccount, clusterId, capacity, protocol, status },
    {
      trustDomain: 'cluster.local',
      serviceAccount: 'default',
      clusterId: 'Kubernetes',
      capacity: 1,
      protocol: 'TCP',
      status: 'Healthy',
    },
  )
  const zero = decodeAddress(workloadBody({ uid: 'u', capacity: 0 }))
  assert.equal(zero.kind === 'workload' && zero.workload.capacity, 0)
})

test('a service address with a shorter length is a block', () => {
  const decoded = decodeAddress(
    serviceBody({
      hostname: 'h',
      namespace: 'ns',
      addresses: [
        { network: 'n', address: ip, length: 32 },
        { network: 'n', address: ip },
        { network: 'n', address: ip, length: 8 },
      ],
    }),
  )
  assert.equal(decoded.kind, 'service')
  if (decoded.kind !== 'service') return
  assert.equal(decoded.service.vips.length, 2)
  assert.deepEqual(decoded.service.cidrVips, [{ network: 'n', cidr: '10.0.0.1/8' }])
})

const rejections: readonly (readonly [what: string, body: Uint8Array, reason: RegExp])[] = [
  ['address of 3 bytes', workloadBody({ addresses: [ip.subarray(1)] }), /^failed to parse address, had 3 bytes$/],
  ['gateway without destination', workloadBody({ waypoint: {} }), /^nonempty gateway address is missing address$/],
  [
    'service key without slash',
    workloadBody({ services: { host: {} } }),
    /^failed to parse namespaced hostname: host$/,
  ],
  [
    'legacy protocol',
    workloadBody({ tunnelProtocol: 2 }),
    /^unknown enum: unsupported tunnel protocol: legacy istio mtls$/,
  ],
  ['unknown protocol', workloadBody({ tunnelProtocol: 9 as 0 }), /^unknown enum: tunnel protocol 9$/],
  ['unknown network mode', workloadBody({ networkMode: 9 as 0 }), /^unknown enum: network mode 9$/],
  ['unknown status', workloadBody({ status: 9 as 0 }), /^unknown enum: workload status 9$/],
  [
    'unknown load balancing mode',
    serviceBody({ loadBalancing: { mode: 9 as 0 } }),
    /^unknown enum: load balancing mode 9$/,
  ],
  [
    'unknown preference',
    serviceBody({ loadBalancing: { routingPreference: [0] } }),
    /^unknown enum: routing preference 0$/,
  ],
  [
    'block that is too long',
    serviceBody({ addresses: [{ address: ip, length: 33 }] }),
    /^invalid cidr: 10\.0\.0\.1\/33$/,
  ],
  ['port that is none', serviceBody({ ports: [{ servicePort: 70_000 }] }), /^invalid port: 70000$/],
  [
    'weighted waypoint without gateway',
    serviceBody({ weightedWaypoints: [{ weight: 1 }] }),
    /^nonempty gateway address is missing address$/,
  ],
  ['neither workload nor service', new Uint8Array(), /^unknown address type$/],
  ['bytes that are no message', Uint8Array.of(0xff), /^malformed message: /],
]
for (const [what, body, reason] of rejections) {
  test(`rejected: ${what}`, () => {
    assert.throws(
      () => decodeAddress(body),
      (error) => error instanceof StateError && reason.test(error.message),
    )
  })
}

test('an unknown visibility is public', () => {
  const decoded = decodeAddress(serviceBody({ hostname: 'h', visibility: 9 as 0 }))
  assert.equal(decoded.kind === 'service' && decoded.service.visibility, 'Public')
})

test('a rejected resource keeps its previous version and does not touch the others', () => {
  const state = createMeshState()
  const receive = createDeltaReceiver(state)
  const push = (resources: Record<string, Uint8Array>, removed: string[] = []) =>
    receive({
      typeUrl: addressTypeUrl,
      resources: Object.entries(resources).map(([name, body]) => ({ name, body, version: '1' })),
      removed,
    })
  push({ a: workloadBody({ uid: 'a', name: 'first' }) })
  const verdict = push({
    a: workloadBody({ uid: 'a', name: 'second', addresses: [new Uint8Array(5)] }),
    b: workloadBody({ uid: 'b' }),
  })
  assert.deepEqual(verdict.rejected, [{ name: 'a', reason: 'failed to parse address, had 5 bytes' }])
  assert.equal(state.workload('a')?.name, 'first')
  assert.ok(state.workload('b'))
  push({}, ['a', 'unknown', 'ns/with/slashes'])
  assert.equal(state.workload('a'), undefined)
})

const connection = {
  source: { ip: '10.9.9.9', port: 1 },
  destination: { ip: '10.0.0.1', port: 80 },
}

function policyWorld() {
  const state = createMeshState()
  const receive = createDeltaReceiver(state)
  receive({
    typeUrl: addressTypeUrl,
    resources: [{ name: 'w', version: '1', body: workloadBody({ uid: 'w', namespace: 'ns' }) }],
    removed: [],
  })
  return {
    push: (body: Uint8Array) =>
      receive({ typeUrl: authorizationTypeUrl, resources: [{ name: 'ns/p', version: '1', body }], removed: [] }),
    remove: () => receive({ typeUrl: authorizationTypeUrl, resources: [], removed: ['ns/p'] }),
    isAllowed() {
      const destinationWorkload = state.workload('w')
      assert.ok(destinationWorkload)
      return authorize(state, { destinationWorkload, ...connection }).allowed
    },
  }
}

const unreadable: readonly (readonly [what: string, policy: PolicyInit])[] = [
  ['matcher without type', matching({ namespaces: [{}] })],
  ['address of 3 bytes', matching({ sourceIps: [{ address: ip.subarray(1), length: 8 }] })],
  ['block that is too long', matching({ sourceIps: [{ address: ip, length: 64 }] })],
  ['port that is none', matching({ destinationPorts: [80 + 0x10000] })],
  ['unknown scope', { ...matching({}), scope: 7 as 0 }],
]
for (const [what, policy] of unreadable) {
  test(`a policy with a ${what} is rejected and opens no door`, () => {
    const { push, remove, isAllowed } = policyWorld()
    assert.ok(isAllowed())
    assert.equal(push(policyBody({ ...policy, action: security.Action.ALLOW })).rejected[0]?.name, 'ns/p')
    assert.ok(!isAllowed())
    remove()
    assert.ok(isAllowed())
    push(policyBody({ ...policy, action: security.Action.DENY }))
    assert.ok(!isAllowed())
    push(policyBody({ ...matching({ destinationPorts: [81] }), action: security.Action.DENY }))
    assert.ok(isAllowed())
    push(policyBody({ ...policy, action: security.Action.DENY }))
    assert.ok(isAllowed(), 'the accepted version stays in force')
  })
}

test('a listener that throws neither makes the push refused nor keeps the others from being told', () => {
  const failures: unknown[] = []
  const told: string[] = []
  const state = createMeshState({ onListenerFailure: (error) => failures.push((error as Error).message) })
  const follow = {
    publication: state.onPublish,
    signal: state.onChange,
    change: state.subscribe,
    local: state.subscribeLocal,
  }
  for (const [name, on] of Object.entries(follow)) {
    on(() => {
      throw new Error(name)
    })
    on(() => void told.push(name))
  }
  const receive = createDeltaReceiver(state)
  const resources = [{ name: 'u', version: '1', body: workloadBody({ uid: 'u' }) }]
  assert.deepEqual(receive({ typeUrl: addressTypeUrl, resources, removed: [] }), { rejected: [] })
  assert.deepEqual(told, Object.keys(follow))
  assert.deepEqual(failures, Object.keys(follow))
  assert.equal(state.workload('u')?.uid, 'u')
})

test('whatever bytes arrive, decoding ends in a value or a typed rejection', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      assert.ok(['policy', 'rejected'].includes(decodePolicy(bytes).kind))
      try {
        decodeAddress(bytes)
      } catch (error) {
        assert.ok(error instanceof StateError)
      }
    }),
  )
})

test('bytes of real messages, damaged, end in a value or a typed rejection', () => {
  const bodies = [
    workloadBody({
      uid: 'u',
      addresses: [ip],
      services: { 'ns/h': { ports: [{ servicePort: 80, targetPort: 8080 }] } },
    }),
    serviceBody({
      hostname: 'h',
      addresses: [{ address: ip, length: 8 }],
      waypoint: { destination: { case: 'hostname', value: { hostname: 'w' } } },
    }),
    policyBody(
      matching({ sourceIps: [{ address: ip, length: 8 }], principals: [{ matchType: { case: 'exact', value: 'x' } }] }),
    ),
  ]
  fc.assert(
    fc.property(fc.constantFrom(...bodies), fc.nat(), fc.nat(255), (body, at, value) => {
      const damaged = Uint8Array.from(body)
      damaged[at % damaged.length] = value
      decodePolicy(damaged)
      try {
        decodeAddress(damaged)
      } catch (error) {
        assert.ok(error instanceof StateError)
      }
    }),
  )
})
