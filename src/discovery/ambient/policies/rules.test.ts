// What node proxies get of each kind of rule, and what the owner of the policy is told.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toJson } from '@bufbuild/protobuf'
import type { AuthorizationPolicySpec } from '../../../api/index.ts'
import { security } from '../../../proto/index.ts'
import { ipText } from '../addresses.ts'
import { convertAuthorizationPolicy } from './authorization-policy.ts'

function convert(action: string | undefined, ...rules: readonly unknown[]) {
  const { message, accepted } = convertAuthorizationPolicy(
    {
      apiVersion: 'security.istio.io/v1',
      kind: 'AuthorizationPolicy',
      metadata: { name: 'p', namespace: 'ns1', generation: 3 },
      spec: { ...(action === undefined ? {} : { action }), rules } as AuthorizationPolicySpec,
    },
    { rootNamespace: 'istio-system', dryRunPolicies: false },
  )
  const json = message && (toJson(security.AuthorizationSchema, message) as { action?: string; groups?: unknown[] })
  return { action: json?.action ?? 'ALLOW', groups: json?.groups ?? [], accepted }
}

const from = (...sources: object[]) => ({ from: sources.map((source) => ({ source })) })
const to = (...operations: object[]) => ({ to: operations.map((operation) => ({ operation })) })
const when = (...conditions: object[]) => ({ when: conditions })
const group = (...rules: object[][]) => ({ rules: rules.map((matches) => ({ matches })) })
const ip = (address: string, length: number) => ({
  address: Buffer.from(address.includes(':') ? ipv6(address) : address.split('.').map(Number)).toString('base64'),
  length,
})
const ipv6 = (text: string): Uint8Array => {
  const bytes = new Uint8Array(16)
  const [head = '', tail = ''] = text.split('::')
  const words = (part: string) => (part === '' ? [] : part.split(':').map((word) => Number.parseInt(word, 16)))
  const at = (index: number, word: number) => bytes.set([word >> 8, word & 255], index * 2)
  for (const [index, word] of words(head).entries()) at(index, word)
  for (const [index, word] of words(tail).entries()) at(8 - words(tail).length + index, word)
  assert.equal(ipText(bytes), text)
  return bytes
}

test('each part of a rule becomes the matches of its kind, the same for ALLOW and DENY', () => {
  const strings = (values: string[]) =>
    values.map((value) => {
      if (value === '*') return { presence: {} }
      if (value.startsWith('*')) return { suffix: value.slice(1) }
      return value.endsWith('*') ? { prefix: value.slice(0, -1) } : { exact: value }
    })
  const names = ['a', 'b*', '*c', '*', '*d*']
  const cases: [rule: object, expected: object][] = [
    [{}, {}],
    [{ from: [], to: [], when: [] }, {}],
    [to({ ports: ['80', '0', '65535'] }), group([{ destinationPorts: [80, 0, 65535] }])],
    [to({ notPorts: ['80'] }), group([{ notDestinationPorts: [80] }])],
    [to({ ports: ['80'], notPorts: ['81'] }), group([{ destinationPorts: [80], notDestinationPorts: [81] }])],
    [to({ ports: ['80'] }, { ports: ['81'] }), group([{ destinationPorts: [80] }, { destinationPorts: [81] }])],
    [from({ principals: names }), group([{ principals: strings(names) }])],
    [from({ notPrincipals: names }), group([{ notPrincipals: strings(names) }])],
    [from({ namespaces: names }), group([{ namespaces: strings(names) }])],
    [
      from({ notNamespaces: ['a'], namespaces: ['*'] }),
      group([{ namespaces: [{ presence: {} }], notNamespaces: [{ exact: 'a' }] }]),
    ],
    [
      from({ serviceAccounts: ['x', 'ns2/y'] }),
      group([
        {
          serviceAccounts: [
            { namespace: 'ns1', serviceAccount: 'x' },
            { namespace: 'ns2', serviceAccount: 'y' },
          ],
        },
      ]),
    ],
    [from({ notServiceAccounts: ['x'] }), group([{ notServiceAccounts: [{ namespace: 'ns1', serviceAccount: 'x' }] }])],
    [
      from({ ipBlocks: ['10.0.0.1', '10.1.2.3/16', 'fd00::1', 'fd00::1:2/64'] }),
      group([{ sourceIps: [ip('10.0.0.1', 32), ip('10.1.2.3', 16), ip('fd00::1', 128), ip('fd00::1:2', 64)] }]),
    ],
    [from({ notIpBlocks: ['10.0.0.0/8'] }), group([{ notSourceIps: [ip('10.0.0.0', 8)] }])],
    [
      from({ namespaces: ['a'] }, { principals: ['b'] }),
      group([{ namespaces: [{ exact: 'a' }] }, { principals: [{ exact: 'b' }] }]),
    ],
    [
      when({ key: 'source.ip', values: ['10.0.0.1'], notValues: ['10.0.0.2'] }),
      group([{ sourceIps: [ip('10.0.0.1', 32)], notSourceIps: [ip('10.0.0.2', 32)] }]),
    ],
    [when({ key: 'source.namespace', values: ['a*'] }), group([{ namespaces: [{ prefix: 'a' }] }])],
    [when({ key: 'source.namespace', notValues: ['a'] }), group([{ notNamespaces: [{ exact: 'a' }] }])],
    [when({ key: 'source.principal', values: ['*'] }), group([{ principals: [{ presence: {} }] }])],
    [when({ key: 'source.principal', notValues: ['*'] }), group([{ notPrincipals: [{ presence: {} }] }])],
    [when({ key: 'destination.ip', values: ['10.0.0.0/8'] }), group([{ destinationIps: [ip('10.0.0.0', 8)] }])],
    [when({ key: 'destination.ip', notValues: ['10.0.0.1'] }), group([{ notDestinationIps: [ip('10.0.0.1', 32)] }])],
    [
      when({ key: 'destination.port', values: ['80'], notValues: ['81'] }),
      group([{ destinationPorts: [80], notDestinationPorts: [81] }]),
    ],
    [
      when({ key: 'destination.port', values: ['80'] }, { key: 'source.namespace', values: ['a'] }),
      group([{ destinationPorts: [80] }], [{ namespaces: [{ exact: 'a' }] }]),
    ],
    [
      { ...when({ key: 'source.namespace', values: ['c'] }), ...from({ namespaces: ['b'] }), ...to({ ports: ['80'] }) },
      group([{ destinationPorts: [80] }], [{ namespaces: [{ exact: 'b' }] }], [{ namespaces: [{ exact: 'c' }] }]),
    ],
    // No list has anything in it: never.
    [to({}), group([{}])],
    [from({ principals: [] }), group([{}])],
  ]
  for (const [rule, expected] of cases) {
    for (const action of ['ALLOW', 'DENY', undefined]) {
      const { groups, accepted, action: sent } = convert(action, rule)
      assert.deepEqual(groups, [expected], JSON.stringify(rule))
      assert.equal(sent, action ?? 'ALLOW')
      const told = {
        type: 'ZtunnelAccepted',
        status: 'True',
        reason: 'Accepted',
        message: 'attached to ztunnel',
        observedGeneration: 3,
      }
      assert.deepEqual(accepted, told)
    }
  }
})

test('several rules are several groups, in order', () => {
  const { groups } = convert('DENY', to({ ports: ['1'] }), {}, from({ namespaces: ['a'] }))
  assert.deepEqual(groups, [group([{ destinationPorts: [1] }]), {}, group([{ namespaces: [{ exact: 'a' }] }])])
})

test('what only HTTP can tell is named as it is written, each once, in order', () => {
  const start = 'ztunnel does not support HTTP attributes (found: '
  const end = '). In ambient mode you must use a waypoint proxy to enforce HTTP rules. '
  const cases: [rules: object[], found: string][] = [
    [[to({ hosts: ['a'] })], 'hosts'],
    [[to({ notHosts: ['a'] })], 'notHosts'],
    [[to({ methods: ['GET'], notMethods: ['PUT'] })], 'methods, notMethods'],
    [[to({ paths: ['/'], notPaths: ['/x'] })], 'notPaths, paths'],
    [[from({ remoteIpBlocks: ['10.0.0.1'], notRemoteIpBlocks: ['10.0.0.2'] })], 'notRemoteIpBlocks, remoteIpBlocks'],
    [[from({ requestPrincipals: ['*'], notRequestPrincipals: ['a'] })], 'notRequestPrincipals, requestPrincipals'],
    [[when({ key: 'request.headers[x-a]', values: ['a'] })], 'request.headers[x-a]'],
    [[when({ key: 'request.auth.claims[a][b]', values: ['a'] })], 'request.auth.claims[a][b]'],
    [
      [when({ key: 'remote.ip', values: ['10.0.0.1'] }, { key: 'connection.sni', values: ['a'] })],
      'connection.sni, remote.ip',
    ],
    [[when({ key: 'source.serviceAccount', values: ['a'] })], 'source.serviceAccount'],
    [[when({ key: 'experimental.envoy.filters.a[b]', values: ['a'] })], 'experimental.envoy.filters.a[b]'],
    [[to({ methods: ['GET'] }), to({ methods: ['PUT'], hosts: ['a'] })], 'hosts, methods'],
  ]
  for (const [rules, found] of cases) {
    const allow = convert('ALLOW', ...rules)
    assert.deepEqual(allow.groups, [])
    assert.deepEqual([allow.accepted?.status, allow.accepted?.reason], ['True', 'UnsupportedValue'])
    assert.equal(
      allow.accepted?.message,
      `${start}${found}${end}Within an ALLOW policy, rules matching HTTP attributes are omitted. This will be more restrictive than requested.`,
    )
    const deny = convert('DENY', ...rules)
    assert.deepEqual(
      deny.groups,
      rules.map((rule) =>
        group(
          ...Object.values(rule).flatMap((part) => ('when' in rule ? part.map(() => [{}]) : [part.map(() => ({}))])),
        ),
      ),
    )
    assert.equal(
      deny.accepted?.message,
      `${start}${found}${end}After omitting unsupported HTTP attributes, this DENY policy has no enforceable rules at ztunnel and will have no effect. Deploy a waypoint proxy and use a targetRef to enforce this policy.`,
    )
  }
})

test('a DENY rule keeps what can be judged of it, and its owner learns whether that still denies', () => {
  const methods = { methods: ['GET'] }
  const cases: [rules: object[], groups: object[], effective: boolean][] = [
    [[to({ ports: ['80'], ...methods })], [group([{ destinationPorts: [80] }])], true],
    [[to({ ports: ['80'] }, methods)], [group([{ destinationPorts: [80] }, {}])], true],
    [[{ ...to(methods), ...from({ namespaces: ['a'] }) }], [group([{}], [{ namespaces: [{ exact: 'a' }] }])], false],
    [
      [{ ...from({ namespaces: ['a'] }), ...when({ key: 'request.headers[x]', values: ['b'] }) }],
      [group([{ namespaces: [{ exact: 'a' }] }], [{}])],
      false,
    ],
    [[from({ namespaces: ['a'], requestPrincipals: ['*'] })], [group([{ namespaces: [{ exact: 'a' }] }])], true],
    [[to(methods), from({ namespaces: ['a'] })], [group([{}]), group([{ namespaces: [{ exact: 'a' }] }])], true],
    [[to(methods), {}], [group([{}]), {}], true],
  ]
  for (const [rules, groups, effective] of cases) {
    const deny = convert('DENY', ...rules)
    assert.deepEqual(deny.groups, groups, JSON.stringify(rules))
    assert.equal(
      /is enforced without the HTTP rules/.test(deny.accepted?.message ?? ''),
      effective,
      JSON.stringify(rules),
    )
    assert.equal(/will have no effect/.test(deny.accepted?.message ?? ''), !effective, JSON.stringify(rules))
  }
})
