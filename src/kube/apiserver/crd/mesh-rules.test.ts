import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type KubeObject, kindsOfCrd, loadMeshCrds } from '../../../api/index.ts'
import { compileRules } from './rules.ts'

const kinds = (await loadMeshCrds()).flatMap(kindsOfCrd)

function faults(apiVersion: string, kind: string, spec: unknown): string[] {
  const definition = kinds.find((one) => `${one.group}/${one.version}` === apiVersion && one.kind === kind)
  assert.ok(definition?.schema)
  const object: KubeObject = { apiVersion, kind, metadata: { name: 'a', namespace: 'b' }, spec: structuredClone(spec) }
  definition.applyDefaults?.(object)
  const shape = definition.validate?.(object) ?? []
  return [...shape, ...compileRules(definition.schema).check(object)].map(
    ({ field, message }) => `${field}: ${message}`,
  )
}

test('every rule of the definitions can be evaluated', () => {
  for (const { schema, kind } of kinds)
    assert.deepEqual(schema === undefined ? [] : compileRules(schema).unsupported, [], kind)
})

const gateway = 'gateway.networking.k8s.io/v1'
const listener = { name: 'a', port: 80, protocol: 'HTTP' }
const of = (...listeners: object[]) => ({ gatewayClassName: 'istio', listeners })
const route = (rule: object) => ({ parentRefs: [{ name: 'gw' }], rules: [rule] })
const web = { name: 'web', port: 80 }

const good: readonly (readonly [string, string, unknown])[] = [
  [
    gateway,
    'Gateway',
    of(
      listener,
      { ...listener, name: 'b', hostname: 'a.test' },
      { name: 'c', port: 443, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'x' }] } },
    ),
  ],
  [gateway, 'Gateway', of({ name: 'mesh', port: 15008, protocol: 'HBONE' })],
  [
    gateway,
    'HTTPRoute',
    route({
      backendRefs: [web],
      filters: [{ type: 'URLRewrite', urlRewrite: { path: { type: 'ReplaceFullPath', replaceFullPath: '/x' } } }],
    }),
  ],
  [
    gateway,
    'HTTPRoute',
    route({
      backendRefs: [{ group: 'networking.istio.io', kind: 'Hostname', name: 'a.test' }],
      timeouts: { request: '10s', backendRequest: '2s' },
    }),
  ],
  [gateway, 'GRPCRoute', route({ matches: [{ method: { service: 'a.B' } }], backendRefs: [web] })],
]
for (const [apiVersion, kind, spec] of good) {
  test(`valid ${kind} ${JSON.stringify(spec).slice(0, 100)}`, () =>
    assert.deepEqual(faults(apiVersion, kind, spec), []))
}

const bad: readonly (readonly [string, string, unknown, RegExp])[] = [
  [
    gateway,
    'Gateway',
    of({ ...listener, tls: { mode: 'Passthrough' } }),
    /^spec\.listeners: .*tls must not be specified for protocols/,
  ],
  [
    gateway,
    'Gateway',
    of(listener, { ...listener, name: 'b' }),
    /^spec\.listeners: .*Combination of port, protocol and hostname must be unique/,
  ],
  [
    gateway,
    'Gateway',
    of({ name: 'c', port: 443, protocol: 'HTTPS', tls: {} }),
    /^spec\.listeners\[0\]\.tls: .*certificateRefs or options must be specified/,
  ],
  [
    gateway,
    'HTTPRoute',
    route({ backendRefs: [{ name: 'web' }] }),
    /^spec\.rules\[0\]\.backendRefs\[0\]: .*Must have port for Service reference/,
  ],
  [
    gateway,
    'HTTPRoute',
    route({ matches: [{ path: { value: 'x' } }] }),
    /^spec\.rules\[0\]\.matches\[0\]\.path: .*value must be an absolute path/,
  ],
  [
    gateway,
    'HTTPRoute',
    route({ filters: [{ type: 'URLRewrite' }] }),
    /^spec\.rules\[0\]\.filters\[0\]: .*filter\.urlRewrite must be specified for URLRewrite filter\.type/,
  ],
  [
    gateway,
    'HTTPRoute',
    route({ backendRefs: [web], filters: [{ type: 'RequestRedirect', requestRedirect: {} }] }),
    /RequestRedirect filter must not be used together with backendRefs/,
  ],
  [
    gateway,
    'HTTPRoute',
    route({ backendRefs: [web], timeouts: { request: '1s', backendRequest: '2s' } }),
    /backendRequest timeout cannot be longer/,
  ],
  [
    'security.istio.io/v1',
    'AuthorizationPolicy',
    { selector: {}, targetRefs: [{ kind: 'Gateway', name: 'a' }] },
    /^spec: .*only one of targetRefs or selector can be set/,
  ],
  [
    'networking.istio.io/v1',
    'VirtualService',
    { http: [{ timeout: '10us' }] },
    /^spec\.http\[0\]\.timeout: .*must be a valid duration greater than 1ms/,
  ],
]
for (const [apiVersion, kind, spec, wanted] of bad) {
  test(`invalid ${kind}: ${wanted.source}`, () => assert.match(faults(apiVersion, kind, spec).join('\n'), wanted))
}
