import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { dumpState } from './dump.ts'
import { StateError } from './errors.ts'
import { parseLocalFile, readLocalContent } from './local-file.ts'
import { createMeshState } from './store.ts'

const policy = (match: string): string =>
  `policies: [{name: p, namespace: n, scope: Namespace, action: Allow, dryRun: false, rules: [[[${match}]]]}]`

test('string matchers are read as tags and as objects', () => {
  const tagged = parseLocalFile(policy('{principals: [!Exact a, !Prefix b, !Suffix c, !Presence []]}'))
  const objects = parseLocalFile(policy('{principals: [{Exact: a}, {Prefix: b}, {Suffix: c}, {Presence: []}]}'))
  assert.deepEqual(tagged, objects)
  assert.deepEqual(tagged.policies[0]?.rules[0]?.[0]?.[0]?.principals, [
    { kind: 'exact', value: 'a' },
    { kind: 'prefix', value: 'b' },
    { kind: 'suffix', value: 'c' },
    { kind: 'presence' },
  ])
})

test('an empty file is an empty mesh', () => {
  assert.deepEqual(parseLocalFile(''), { workloads: [], services: [], policies: [] })
})

const wrong: readonly (readonly [text: string, message: RegExp])[] = [
  ['polices: []', /unknown key polices/],
  ['workloads: [{workloadIps: [], services: {}, namespace: n, nam: x}]', /workloads\[0\]\.nam: unknown key nam/],
  ['workloads: [{services: {}, namespace: n}]', /workloads\[0\]: missing key workloadIps/],
  [
    'workloads: [{workloadIps: [10.0.0.300], services: {}, namespace: n}]',
    /workloadIps\[0\]: expected an IP address, got "10\.0\.0\.300"/,
  ],
  [
    'workloads: [{workloadIps: [], services: {host: {}}, namespace: n}]',
    /expected <namespace>\/<hostname>, got "host"/,
  ],
  [
    'workloads: [{workloadIps: [], services: {}, namespace: n, protocol: UDP}]',
    /protocol: expected one of TCP, HBONE, got "UDP"/,
  ],
  [
    'services: [{name: a, namespace: n, hostname: h, vips: [10.0.0.1], ports: {}}]',
    /vips\[0\]: expected <network>\/<IP>/,
  ],
  [
    'services: [{name: a, namespace: n, hostname: h, vips: [], ports: {80: 70000}}]',
    /ports\.80: expected a whole number up to 65535/,
  ],
  [policy('{sourceIps: [10.0.0.1]}'), /sourceIps\[0\]: expected an address block/],
  [policy('{principals: [{Exact: a, Prefix: b}]}'), /expected one of Exact, Prefix, Suffix/],
  [policy('{principals: [plain]}'), /expected an object/],
  [policy('{hosts: [a]}'), /unknown key hosts/],
  ['workloads: [', /local configuration: /],
]
for (const [text, message] of wrong) {
  test(`refused: ${text}`, () => {
    assert.throws(
      () => parseLocalFile(text),
      (error) => error instanceof StateError && message.test(error.message),
    )
  })
}

test('whatever value is read, it ends in content or a typed error', () => {
  const value = fc.object({
    key: fc.constantFrom('workloads', 'services', 'policies', 'name', 'rules', 'vips'),
    maxDepth: 4,
  })
  fc.assert(
    fc.property(value, (input) => {
      try {
        readLocalContent(input)
      } catch (error) {
        assert.ok(error instanceof StateError)
      }
    }),
  )
})

test('what is dumped of policies and services is read back as the same', () => {
  const text = `
services:
- {name: s, namespace: n, hostname: s.example, vips: [net/10.0.0.1], ports: {80: 0}, cidrVips: [{network: net, cidr: 10.0.0.0/8}], subjectAltNames: [x],
   waypoint: {destination: n/w.example, hboneMtlsPort: 15008}, weightedWaypoints: [{destination: {destination: net/10.0.0.2, hboneMtlsPort: 15008}, weight: 3}],
   loadBalancer: {mode: Failover, routingPreferences: [Network], healthPolicy: AllowAll}, ipFamilies: Dual, canonical: true, visibility: Namespace}
${policy('{principals: [{Exact: a}, {Presence: []}], notSourceIps: [10.0.0.0/8], destinationPorts: [80], serviceAccounts: [{namespace: n, serviceAccount: s}]}')}`
  const content = parseLocalFile(text)
  const state = createMeshState()
  state.replace(content)
  const { services, policies } = dumpState(state)
  assert.deepEqual(readLocalContent(JSON.parse(JSON.stringify({ services, policies }))), content)
})
