import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type CustomResourceDefinition,
  type KindDefinition,
  type KubeObject,
  kindsOfCrd,
  loadMeshCrds,
  validateCrd,
} from './index.ts'

const crds = await loadMeshCrds()
const kinds = crds.flatMap(kindsOfCrd)

function kindOf(apiVersion: string, kind: string): KindDefinition {
  const found = kinds.find((one) => `${one.group}/${one.version}` === apiVersion && one.kind === kind)
  assert.ok(found, `${apiVersion} ${kind}`)
  return found
}

function check(
  apiVersion: string,
  kind: string,
  spec: unknown,
): { unknown: string[]; faults: string[]; object: KubeObject } {
  const definition = kindOf(apiVersion, kind)
  const object: KubeObject = { apiVersion, kind, metadata: { name: 'a', namespace: 'b' }, spec: structuredClone(spec) }
  const unknown = definition.prune?.(object) ?? []
  definition.applyDefaults?.(object)
  const faults = (definition.validate?.(object) ?? []).map((cause) => `${cause.field}: ${cause.message}`)
  return { unknown, faults, object }
}

test('every definition is a valid CustomResourceDefinition', () => {
  for (const crd of crds) assert.deepEqual(validateCrd(crd as CustomResourceDefinition), [], crd.metadata.name)
  assert.equal(new Set(crds.map((crd) => crd.metadata.name)).size, crds.length)
})

test('all versions of Istio kinds are served and v1 is stored', () => {
  const { storage } = kindOf('networking.istio.io/v1alpha3', 'VirtualService')
  assert.equal(storage?.version, 'v1')
  assert.equal(kindOf('telemetry.istio.io/v1', 'Telemetry').storage?.version, 'v1alpha1')
})

test('a valid policy passes', () => {
  const { unknown, faults } = check('security.istio.io/v1', 'AuthorizationPolicy', {
    selector: { matchLabels: { app: 'web' } },
    action: 'DENY',
    rules: [
      { from: [{ source: { principals: ['cluster.local/ns/x/sa/y'] } }], to: [{ operation: { ports: ['80'] } }] },
    ],
  })
  assert.deepEqual([unknown, faults], [[], []])
})

const cases: readonly (readonly [string, string, unknown, { unknown?: string[]; fault?: RegExp }])[] = [
  [
    'security.istio.io/v1',
    'PeerAuthentication',
    { mtls: { mode: 'STRIKT' } },
    {
      fault:
        /^spec\.mtls\.mode: Unsupported value: "STRIKT": supported values: "UNSET", "DISABLE", "PERMISSIVE", "STRICT"$/,
    },
  ],
  ['security.istio.io/v1', 'PeerAuthentication', { mtlss: {} }, { unknown: ['spec.mtlss'] }],
  [
    'security.istio.io/v1',
    'AuthorizationPolicy',
    { rules: [{ from: [{ source: { principal: ['x'] } }] }] },
    { unknown: ['spec.rules[0].from[0].source.principal'] },
  ],
  [
    'networking.istio.io/v1',
    'ServiceEntry',
    { hosts: ['a.test'], ports: [{ number: '80', name: 'http' }] },
    {
      fault:
        /^spec\.ports\[0\]\.number: Invalid value: "80": spec\.ports\[0\]\.number in body must be of type integer: "string"$/,
    },
  ],
  ['networking.istio.io/v1', 'ServiceEntry', {}, { fault: /^spec\.hosts: Required value$/ }],
  [
    'networking.istio.io/v1',
    'DestinationRule',
    { host: 'a', trafficPolicy: { loadBalancer: { simple: 'RANDOM', consistentHash: { useSourceIp: true } } } },
    { fault: /must validate one and only one schema \(oneOf\)/ },
  ],
  [
    'networking.istio.io/v1',
    'VirtualService',
    { hosts: ['a'], http: [{ timeout: '5', route: [{ destination: { host: 'a' } }] }] },
    { fault: /^spec\.http\[0\]\.timeout: Invalid value: "5"/ },
  ],
  [
    'gateway.networking.k8s.io/v1',
    'Gateway',
    { gatewayClassName: 'istio', listeners: [{ name: 'a', port: 0, protocol: 'HTTP' }] },
    { fault: /^spec\.listeners\[0\]\.port: Invalid value: 0: .* greater than or equal to 1$/ },
  ],
  [
    'gateway.networking.k8s.io/v1',
    'HTTPRoute',
    { parentRefs: [{ nam: 'gw' }] },
    { unknown: ['spec.parentRefs[0].nam'] },
  ],
]

for (const [apiVersion, kind, spec, wanted] of cases) {
  test(`${kind} ${JSON.stringify(spec)} is reported with its field`, () => {
    const { unknown, faults } = check(apiVersion, kind, spec)
    if (wanted.unknown !== undefined) assert.deepEqual(unknown, wanted.unknown)
    if (wanted.fault !== undefined) assert.match(faults.join('\n'), wanted.fault)
  })
}

test('defaults of a route are those of the Gateway API', () => {
  const { object } = check('gateway.networking.k8s.io/v1', 'HTTPRoute', {
    parentRefs: [{ name: 'gw' }],
    rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
  })
  assert.deepEqual(object.spec, {
    parentRefs: [{ name: 'gw', group: 'gateway.networking.k8s.io', kind: 'Gateway' }],
    rules: [
      {
        backendRefs: [{ name: 'web', port: 80, group: '', kind: 'Service', weight: 1 }],
        matches: [{ path: { type: 'PathPrefix', value: '/' } }],
      },
    ],
  })
})
