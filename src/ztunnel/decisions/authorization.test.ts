import assert from 'node:assert/strict'
import { test } from 'node:test'
import { meshOf } from '../../../test/support/mesh.ts'
import { authorize } from './authorization.ts'
import type { AuthorizationDecision } from './types.ts'

function decide(policies: string, named = '[]'): AuthorizationDecision {
  const state = meshOf(
    `{policies: [${policies}], workloads: [{uid: w, namespace: ns, workloadIps: [], services: {}, authorizationPolicies: ${named}}]}`,
  )
  const destinationWorkload = state.workload('w')
  assert.ok(destinationWorkload)
  return authorize(state, {
    destinationWorkload,
    source: { ip: '10.0.0.1', port: 1 },
    destination: { ip: '10.0.0.2', port: 80 },
    identity: { trustDomain: 'td', namespace: 'a', serviceAccount: 'b' },
  })
}

const policy = (name: string, action: string, rules: string, dryRun = false, scope = 'Namespace'): string =>
  `{name: ${name}, namespace: ns, scope: ${scope}, action: ${action}, dryRun: ${dryRun}, rules: ${rules}}`

test('a DENY beats an ALLOW, in any order', () => {
  const [allow, deny] = [policy('allow', 'Allow', '[[]]'), policy('deny', 'Deny', '[[]]')]
  for (const both of [`${allow}, ${deny}`, `${deny}, ${allow}`]) {
    assert.equal(decide(both).reason, 'explicitly denied by: ns/deny')
    assert.equal(decide(both).message, 'deny policy match')
  }
  assert.deepEqual([decide(allow).allowed, decide(allow).policy], [true, 'ns/allow'])
})

test('an ALLOW that does not match rejects, an empty DENY does not', () => {
  assert.equal(decide(policy('allow', 'Allow', '[]')).message, 'no allow policies matched')
  assert.equal(decide(policy('deny', 'Deny', '[[[{}]]]')).allowed, true)
})

test('dry-run policies are told and change nothing', () => {
  const decision = decide(`${policy('d', 'Deny', '[[]]', true)}, ${policy('a', 'Allow', '[]', true)}`)
  assert.ok(decision.allowed)
  assert.deepEqual(decision.dryRun, [
    { policy: 'ns/d', message: 'dry-run: deny policy match' },
    { message: 'dry-run: no allow policies match' },
  ])
})

test('policies the workload names that are not known are told', () => {
  const decision = decide(policy('s', 'Deny', '[[]]', false, 'WorkloadSelector'), '[ns/s, ns/absent]')
  assert.deepEqual(decision.missingPolicies, ['ns/absent'])
  assert.equal(decision.allowed, false)
})

test('a name of a namespace policy in the workload does not bring it in from elsewhere', () => {
  const other = '{name: p, namespace: other, scope: Namespace, action: Deny, dryRun: false, rules: [[]]}'
  assert.ok(decide(other, '[other/p]').allowed)
})
