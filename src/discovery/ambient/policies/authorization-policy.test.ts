import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toBinary, toJson } from '@bufbuild/protobuf'
import fc from 'fast-check'
import type { AuthorizationPolicySpec } from '../../../api/index.ts'
import { security } from '../../../proto/index.ts'
import { convertAuthorizationPolicy } from './authorization-policy.ts'

function convert(spec: unknown, namespace = 'ns1') {
  const converted = convertAuthorizationPolicy(
    {
      apiVersion: 'security.istio.io/v1',
      kind: 'AuthorizationPolicy',
      metadata: { name: 'p', namespace },
      spec: spec as AuthorizationPolicySpec,
    },
    { rootNamespace: 'istio-system', dryRunPolicies: false },
  )
  const json = converted.message === undefined ? undefined : toJson(security.AuthorizationSchema, converted.message)
  return { ...converted, json: json as { scope?: string; groups?: unknown } | undefined }
}

/** The groups of a policy with one rule. */
const groupsOf = (action: string, rule: unknown): unknown => convert({ action, rules: [rule] }).json?.groups
const source = (fields: Record<string, readonly string[]>) => ({ from: [{ source: fields }] })
const oneMatch = (match: unknown) => [{ rules: [{ matches: [match] }] }]
const never = oneMatch({})

test('a selector without labels means everything in scope', () => {
  assert.equal(convert({ selector: {}, rules: [{}] }).json?.scope, 'NAMESPACE')
  assert.equal(convert({ selector: { matchLabels: {} }, rules: [{}] }, 'istio-system').json?.scope, undefined)
  assert.equal(convert({ selector: { matchLabels: { a: 'b' } } }).json?.scope, 'WORKLOAD_SELECTOR')
})

test('no rules never match, an empty rule always does', () => {
  assert.equal(convert({ rules: [] }).json?.groups, undefined)
  assert.equal(convert(null).json?.groups, undefined)
  assert.deepEqual(convert({ rules: [{}] }).json?.groups, [{}])
})

test('trust domains of a source are expressed on its principals', () => {
  const cases: readonly [fields: Record<string, readonly string[]>, match: unknown][] = [
    [{ trustDomains: ['td'] }, { principals: [{ prefix: 'td/' }] }],
    [{ trustDomains: ['td*'] }, { principals: [{ prefix: 'td' }] }],
    [{ trustDomains: ['*'] }, { principals: [{ presence: {} }] }],
    [{ notTrustDomains: ['td'] }, { notPrincipals: [{ prefix: 'td/' }] }],
    [{ trustDomains: ['a'], principals: ['a/ns/x/sa/y', 'b/ns/x/sa/y'] }, { principals: [{ exact: 'a/ns/x/sa/y' }] }],
    [{ trustDomains: ['a'], principals: ['b/ns/x/sa/y'] }, {}],
    [{ trustDomains: ['a'], principals: ['b/ns/x/sa/y'], namespaces: ['n'] }, {}],
    [
      { trustDomains: ['a*'], principals: ['ab/ns/x/sa/y', 'b/ns/x/sa/y'] },
      { principals: [{ exact: 'ab/ns/x/sa/y' }] },
    ],
    [
      { trustDomains: ['a'], notTrustDomains: ['b*'] },
      { principals: [{ prefix: 'a/' }], notPrincipals: [{ prefix: 'b' }] },
    ],
  ]
  for (const [fields, match] of cases) {
    assert.deepEqual(groupsOf('ALLOW', source(fields)), oneMatch(match), JSON.stringify(fields))
    assert.deepEqual(groupsOf('DENY', source(fields)), oneMatch(match), JSON.stringify(fields))
  }
})

test('trust domains that cannot be expressed drop an ALLOW rule, and are left out of a DENY rule', () => {
  const unsuitable: readonly Record<string, readonly string[]>[] = [
    { trustDomains: ['*.corp'], namespaces: ['x'] },
    { trustDomains: ['td', '*.corp'], namespaces: ['x'] },
    { notTrustDomains: ['*.corp'], namespaces: ['x'] },
    { trustDomains: ['*.corp'], notTrustDomains: ['td', '*.net'], namespaces: ['x'] },
  ]
  for (const fields of unsuitable) {
    assert.equal(groupsOf('ALLOW', source(fields)), undefined)
    assert.deepEqual(groupsOf('DENY', source(fields)), oneMatch({ namespaces: [{ exact: 'x' }] }))
  }
  const wildcard = source({ trustDomains: ['td'], principals: ['*/sa/y'] })
  assert.equal(groupsOf('ALLOW', wildcard), undefined)
  assert.deepEqual(groupsOf('DENY', wildcard), oneMatch({ principals: [{ suffix: '/sa/y' }] }))
})

test('a value that cannot be read never makes an ALLOW rule admit more', () => {
  const port = (ports: readonly string[], rest = {}) => ({ to: [{ operation: { ports, ...rest } }] })
  assert.deepEqual(groupsOf('ALLOW', port(['http'])), never)
  assert.deepEqual(groupsOf('ALLOW', port(['http', '80'])), oneMatch({ destinationPorts: [80] }))
  assert.deepEqual(groupsOf('ALLOW', port(['80'], { notPorts: ['99999'] })), never)
  assert.deepEqual(groupsOf('ALLOW', source({ ipBlocks: ['10.0.0.0/40'], namespaces: ['x'] })), never)
  assert.deepEqual(groupsOf('ALLOW', source({ notIpBlocks: ['?'], namespaces: ['x'] })), never)
  assert.deepEqual(groupsOf('ALLOW', source({ serviceAccounts: ['a/b/c'] })), never)
})

test('a value that cannot be read only makes a DENY rule deny more', () => {
  assert.deepEqual(
    groupsOf('DENY', source({ ipBlocks: ['nonsense'], namespaces: ['x'] })),
    oneMatch({ namespaces: [{ exact: 'x' }] }),
  )
  assert.deepEqual(
    groupsOf('DENY', source({ notIpBlocks: ['nonsense'], namespaces: ['x'] })),
    oneMatch({ namespaces: [{ exact: 'x' }] }),
  )
  const lost: readonly Record<string, readonly string[]>[] = [{ ipBlocks: ['10.0.0.0/99'] }, { notIpBlocks: ['?'] }]
  for (const fields of lost) {
    assert.deepEqual(groupsOf('DENY', source(fields)), oneMatch({ notDestinationPorts: [0] }), JSON.stringify(fields))
  }
})

test('an action that is none denies everything, and is told', () => {
  const { json, accepted, invalid } = convert({ action: 'deny', rules: [{}], selector: { matchLabels: { a: 'b' } } })
  assert.deepEqual(
    { ...json },
    { name: 'p', namespace: 'ns1', scope: 'WORKLOAD_SELECTOR', action: 'DENY', groups: [{}] },
  )
  assert.equal(accepted?.status, 'False')
  assert.deepEqual(invalid, ['action: "deny"'])
})

test('a selector that cannot be read selects everything in scope', () => {
  for (const selector of ['app=a', { matchLabels: { app: 1 } }, { matchLabels: ['app'] }, null]) {
    assert.equal(convert({ selector, rules: [{}] }).json?.scope, 'NAMESPACE', JSON.stringify(selector))
  }
})

test('whatever a policy without targets holds, it is sent, or it is of an action that node proxies do not enforce', () => {
  const names = fc.constantFrom(
    'action',
    'selector',
    'rules',
    'matchLabels',
    'from',
    'to',
    'when',
    'source',
    'operation',
  )
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small' },
      fc.jsonValue({ maxDepth: 1 }),
      fc.constantFrom('ALLOW', 'DENY', 'AUDIT'),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(fc.oneof(names, fc.constantFrom('ports', 'ipBlocks', 'principals', 'key', 'values')), tie('tree')),
    ),
  }))
  fc.assert(
    fc.property(fc.dictionary(names, tree), (spec) => {
      const { message } = convert(spec)
      if (message !== undefined) toBinary(security.AuthorizationSchema, message)
      else assert.equal(spec.action, 'AUDIT')
    }),
  )
})

test('what was left out is told with its place', () => {
  const { invalid } = convert({ rules: [{ to: [{ operation: { ports: ['http'] } }] }, source({ ipBlocks: ['x'] })] })
  assert.deepEqual(invalid, ['ports: "http"', 'ipBlocks: "x"'])
})

test('a restriction that is not known is treated as one that cannot be judged', () => {
  for (const rule of [
    source({ namespaces: ['x'], deviceIds: ['d'] }),
    { to: [{ operation: { ports: ['80'], verbs: ['GET'] } }] },
    { ...source({ namespaces: ['x'] }), unless: [{}] },
  ]) {
    assert.equal(groupsOf('ALLOW', rule), undefined)
    assert.notEqual(groupsOf('DENY', rule), undefined)
  }
})

test('a rule that is not of the right shape admits nothing, and denies everything', () => {
  for (const rules of [[null], [{ from: 'everywhere' }], 'all', { from: [] }]) {
    assert.equal(convert({ action: 'ALLOW', rules }).json?.groups, undefined)
    assert.deepEqual(convert({ action: 'DENY', rules }).json?.groups, [{}])
  }
})

test('an ALLOW rule with an HTTP attribute is dropped, the others stay', () => {
  const { json, accepted } = convert({
    rules: [{ to: [{ operation: { methods: ['GET'] } }] }, source({ namespaces: ['*-prod'] })],
  })
  assert.deepEqual(json?.groups, oneMatch({ namespaces: [{ suffix: '-prod' }] }))
  assert.equal(accepted?.reason, 'UnsupportedValue')
  assert.match(accepted?.message ?? '', /found: methods/)
})

test('policies for CUSTOM and AUDIT, and those with targets, are not for node proxies', () => {
  assert.equal(convert({ action: 'CUSTOM' }).accepted?.status, 'False')
  assert.equal(convert({ action: 'CUSTOM' }).message, undefined)
  const targeted = convert({ targetRefs: [{ kind: 'Service', name: 'web' }] })
  assert.deepEqual([targeted.message, targeted.accepted], [undefined, undefined])
})
