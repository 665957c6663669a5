// Topic rbac.
import assert from 'node:assert/strict'
import { authorize, parseSpiffeId, policyMatches, stringMatches } from '../../../src/ztunnel/decisions/index.ts'
import type { Workload } from '../../../src/ztunnel/model.ts'
import { type MeshState, parseLocalFile } from '../../../src/ztunnel/state/index.ts'
import { type Data, meshOf, socketAddress, type TopicRunner } from './topic.ts'

export const runRbac: TopicRunner = (one, defaults) => {
  switch (one.kind) {
    case 'match':
      return runMatch(one, defaults)
    case 'string':
      return runString(one)
    case 'decision':
      return runDecision(one)
    case 'live':
      return runLive(one)
    default:
      throw new Error(`unknown kind ${one.kind}`)
  }
}

function runMatch(one: Data, defaults: Data): void {
  const policy = policyOf(one.rules)
  const connections = { ...defaults.connections, ...one.connections }
  for (const [name, matches] of Object.entries(one.expect)) {
    assert.equal(policyMatches(policy, connectionOf(connections[name])), matches, name)
  }
}

function runString(one: Data): void {
  const matcher = policyOf([[[{ namespaces: [one.matcher] }]]]).rules[0]?.[0]?.[0]?.namespaces[0]
  assert.ok(matcher)
  for (const [value, matches] of Object.entries(one.expect)) assert.equal(stringMatches(matcher, value), matches, value)
}

function runDecision(one: Data): void {
  const verdict = decide(meshOf(undefined, { policies: one.policies }), one.workload, one.connection)
  assert.equal(verdict.allowed, one.expect.allowed)
  if (one.expect.reason !== undefined) assert.equal(verdict.reason, one.expect.reason)
  if (one.expect.logs === undefined) return
  const byText = (logs: readonly unknown[]): string[] =>
    logs.map((log) => JSON.stringify(log, ['message', 'policy'])).sort()
  assert.deepEqual(byText(verdict.dryRun), byText(one.expect.logs))
}

/** The connections are re-evaluated by hand here; the tracker that does so in the data path has its own tests. */
function runLive(one: Data): void {
  const state = meshOf(undefined, { policies: one.policies })
  const open = new Map<string, Data>(Object.entries(one.open))
  for (const step of one.steps) {
    state.apply({
      policies: parseLocalFile(JSON.stringify({ policies: step.apply ?? [] })).policies,
      removedPolicies: step.remove ?? [],
    })
    const closed: Record<string, string> = {}
    for (const [name, connection] of open) {
      if (decide(state, one.workload, connection).allowed) continue
      open.delete(name)
      closed[name] = 'connection closed due to policy change'
    }
    assert.deepEqual(closed, step.closed)
    assert.deepEqual([...open.keys()], step.stillOpen)
  }
}

function policyOf(rules: Data) {
  const policy = { name: 'p', namespace: 'n', scope: 'Namespace', action: 'Allow', dryRun: false, rules }
  const [read] = parseLocalFile(JSON.stringify({ policies: [policy] })).policies
  assert.ok(read)
  return read
}

function decide(state: MeshState, workload: Data, connection: Data) {
  const [destinationWorkload] = parseLocalFile(
    JSON.stringify({ workloads: [{ workloadIps: [], services: {}, ...workload }] }),
  ).workloads as readonly Workload[]
  assert.ok(destinationWorkload)
  return authorize(state, { destinationWorkload, ...connectionOf(connection) })
}

function connectionOf(connection: Data) {
  const identity = connection.identity === null ? undefined : parseSpiffeId(connection.identity)
  assert.equal(identity === undefined, connection.identity === null)
  const ends = { source: socketAddress(connection.src), destination: socketAddress(connection.dst) }
  return identity === undefined ? ends : { ...ends, identity }
}
