import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Identity, Policy, PolicyMatch, StringMatch } from '../model.ts'
import { createMeshState, parseLocalFile, policyKey } from '../state/index.ts'
import { authorize, policyMatches } from './authorization.ts'
import type { AuthorizationRequest } from './types.ts'

const name = fc.constantFrom('a', 'b', '')
const principalText = fc.constantFrom('td/ns/a/sa/a', 'td/ns/b/sa/a', 'td/ns/a', 'spiffe://td/ns/a/sa/a')
const matchOf = (value: fc.Arbitrary<string>): fc.Arbitrary<StringMatch> =>
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('exact' as const), value }) },
    fc.record({ kind: fc.constantFrom('prefix' as const, 'suffix' as const), value }),
    fc.constant({ kind: 'presence' as const }),
  )
const some = <T>(of: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, fc.array(of, { minLength: 1, maxLength: 2 }))
const accounts = some(fc.record({ namespace: name, serviceAccount: name }))
const ports = some(fc.constantFrom(80, 81))
const match: fc.Arbitrary<PolicyMatch> = fc.record({
  namespaces: some(matchOf(name)),
  notNamespaces: fc.oneof(fc.constant([]), some(matchOf(name))),
  principals: some(matchOf(principalText)),
  notPrincipals: fc.constant([]),
  serviceAccounts: accounts,
  notServiceAccounts: fc.oneof(fc.constant([]), accounts),
  sourceIps: fc.constant([]),
  notSourceIps: fc.constant([]),
  destinationIps: fc.constant([]),
  notDestinationIps: fc.constant([]),
  destinationPorts: ports,
  notDestinationPorts: fc.oneof(fc.constant([]), ports),
})
const policy: fc.Arbitrary<Policy> = fc.record({
  name: fc.constantFrom('p', 'q', 'r', 's', 't'),
  namespace: fc.constantFrom('a', 'b', ''),
  scope: fc.constantFrom('Global' as const, 'Namespace' as const, 'WorkloadSelector' as const),
  action: fc.constantFrom('Allow' as const, 'Deny' as const),
  dryRun: fc.boolean(),
  rules: fc.array(fc.array(fc.array(match, { maxLength: 2 }), { maxLength: 2 }), { maxLength: 3 }),
})
const identity: fc.Arbitrary<Identity | undefined> = fc.option(
  fc.record({ trustDomain: fc.constant('td'), namespace: name, serviceAccount: name }),
  { nil: undefined },
)
const push = fc.oneof(
  { weight: 3, arbitrary: fc.record({ policies: fc.array(policy, { maxLength: 4 }) }) },
  fc.record({ removedPolicies: fc.array(fc.constantFrom('a/p', 'a/q', 'b/p', 'b/s', '/p', '/q'), { maxLength: 2 }) }),
)

/** The policies of the workload one after the other, in the order in which they came. */
function applicable(policies: ReadonlyMap<string, Policy>, namespace: string, named: readonly string[]): Policy[] {
  const all = [...policies.values()]
  const deniesAll = (one: Policy) => one.namespace === '' && one.action === 'Deny'
  return [
    ...all.filter((one) => one.scope === 'Namespace' && one.namespace === namespace && !deniesAll(one)),
    ...all.filter((one) => one.scope === 'Global' || (one.scope === 'Namespace' && deniesAll(one))),
    ...named.flatMap((key) => policies.get(key) ?? []).filter((one) => one.scope === 'WorkloadSelector'),
  ]
}

test('a look-up by what a connection meets decides as a look at every policy does', () => {
  const named = ['a/p', 'b/q']
  const workloads = parseLocalFile(
    `workloads: [{uid: w, namespace: a, workloadIps: [], services: {}, authorizationPolicies: [a/p, b/q]}]`,
  ).workloads
  const connection = fc.record({ identity, port: fc.constantFrom(80, 81, 82) })
  fc.assert(
    fc.property(fc.array(push, { maxLength: 8 }), fc.array(connection, { minLength: 3 }), (pushes, connections) => {
      const state = createMeshState()
      state.apply({ workloads })
      const model = new Map<string, Policy>()
      for (const one of pushes) {
        state.apply(one)
        if ('policies' in one) {
          for (const put of one.policies) {
            model.delete(policyKey(put))
            model.set(policyKey(put), put)
          }
        } else for (const key of one.removedPolicies) model.delete(key)
      }
      const destinationWorkload = state.workload('w')
      assert.ok(destinationWorkload)
      for (const { identity: peer, port } of connections) {
        const request: AuthorizationRequest = {
          destinationWorkload,
          source: { ip: '10.0.0.1', port: 1 },
          destination: { ip: '10.0.0.2', port },
          ...(peer === undefined ? {} : { identity: peer }),
        }
        const all = applicable(model, 'a', named)
        const matching = all.filter((one) => policyMatches(one, request))
        const firstOf = (action: Policy['action']) => matching.find((one) => one.action === action && !one.dryRun)
        const decision = authorize(state, request)
        const [deny, allow] = [firstOf('Deny'), firstOf('Allow')]
        const hasAllow = all.some((one) => one.action === 'Allow' && !one.dryRun)
        assert.equal(decision.allowed, deny === undefined && (!hasAllow || allow !== undefined))
        const decisive = deny ?? (hasAllow ? allow : undefined)
        assert.equal(decision.policy, decisive === undefined ? undefined : policyKey(decisive))
        const onlyLooking = matching.filter((one) => one.dryRun).map(policyKey)
        assert.deepEqual(
          decision.dryRun.flatMap((one) => one.policy ?? []),
          onlyLooking,
        )
      }
    }),
    { numRuns: 300 },
  )
})

test('a policy of a namespace that does not say of which denies to all and allows nothing to the workloads of others', () => {
  const policy = (action: string) =>
    `{name: p, namespace: "", scope: Namespace, action: ${action}, dryRun: false, rules: [[[{destinationPorts: [80]}]]]}`
  const other =
    '{name: q, namespace: a, scope: Namespace, action: Allow, dryRun: false, rules: [[[{destinationPorts: [81]}]]]}'
  const decide = (policies: readonly string[], port: number) => {
    const state = createMeshState()
    const workload = '{uid: w, namespace: a, workloadIps: [], services: {}}'
    state.apply(parseLocalFile(`{workloads: [${workload}], policies: [${policies.join()}]}`))
    const destinationWorkload = state.workload('w')
    assert.ok(destinationWorkload)
    const request = { destinationWorkload, source: { ip: '10.0.0.1', port: 1 }, destination: { ip: '10.0.0.2', port } }
    return authorize(state, request).allowed
  }
  assert.deepEqual([decide([policy('Deny')], 80), decide([policy('Deny')], 81)], [false, true])
  assert.deepEqual([decide([policy('Allow'), other], 80), decide([policy('Allow'), other], 81)], [false, true])
})
