import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMeshState, type MeshState, parseLocalFile } from '../state/index.ts'
import type { ConnectionError } from './errors.ts'
import { createConnectionTracker, type TrackedConnection } from './tracker.ts'
import type { LiveConnection } from './types.ts'

const pod = { name: 'w', namespace: 'ns', serviceAccount: 'sa' }
const workload = (policies = '') =>
  `{uid: w, name: w, namespace: ns, serviceAccount: sa, workloadIps: [10.0.0.1], services: {}, authorizationPolicies: [${policies}]}`
const denyPort = (name: string, port: number, scope = 'Namespace') =>
  `{name: ${name}, namespace: ns, scope: ${scope}, action: Deny, dryRun: false, rules: [[[{destinationPorts: [${port}]}]]]}`

const push = (state: MeshState, text: string) => state.apply(parseLocalFile(text))

function world() {
  const state = createMeshState()
  push(state, `workloads: [${workload()}]`)
  const told: string[] = []
  const tracker = createConnectionTracker({ state, pod, onPolicyEnd: (_, { reason }) => told.push(reason) })
  const cuts: string[] = []
  const connection = (port: number, more: Partial<TrackedConnection> = {}): TrackedConnection => {
    const from = { ip: '10.0.0.9', port: 1 }
    const destination = { ip: '10.0.0.1', port }
    const live: LiveConnection = {
      direction: 'inbound',
      from,
      originalDestination: undefined,
      actualDestination: destination,
      protocol: 'HBONE',
    }
    return {
      live,
      authorization: { source: from, destination },
      cut: (error: ConnectionError) => void cuts.push(`${port} ${error.flag} ${error.message}`),
      ...more,
    }
  }
  return { state, tracker, connection, cuts, told }
}

test('a new policy ends the connections it denies, and no other', () => {
  const { state, tracker, connection, cuts, told } = world()
  tracker.track(connection(80))
  tracker.track(connection(81))
  push(state, `policies: [${denyPort('p', 81)}]`)
  assert.deepEqual(cuts, ['81 DENY connection closed due to policy change'])
  assert.deepEqual(told, ['explicitly denied by: ns/p'])
})

test('a policy that the workload names from now on ends what it denies', () => {
  const { state, tracker, connection, cuts } = world()
  push(state, `policies: [${denyPort('p', 80, 'WorkloadSelector')}]`)
  tracker.track(connection(80))
  assert.deepEqual(cuts, [])
  push(state, `workloads: [${workload('ns/p')}]`)
  assert.deepEqual(cuts, ['80 DENY connection closed due to policy change'])
})

test('an ALLOW that is removed leaves the other ALLOWs to judge', () => {
  const { state, tracker, connection, cuts } = world()
  const allow = (name: string, port: number) => denyPort(name, port).replace('Deny', 'Allow')
  push(state, `policies: [${allow('a', 80)}, ${allow('b', 81)}]`)
  tracker.track(connection(80))
  tracker.track(connection(81))
  state.apply({ removedPolicies: ['ns/a'] })
  assert.deepEqual(cuts, ['80 DENY connection closed due to policy change'])
})

test('connections of the pod itself are not judged', () => {
  const { state, tracker, connection, cuts } = world()
  const { authorization: _, ...outbound } = connection(80)
  tracker.track(outbound)
  push(state, `policies: [${denyPort('p', 80)}]`)
  assert.deepEqual(cuts, [])
})

test('while the workload is not known the one known before is what counts', () => {
  const { state, tracker, connection, cuts } = world()
  tracker.track(connection(80))
  state.apply({ removedAddresses: ['w'] })
  push(state, `policies: [${denyPort('p', 80)}]`)
  assert.deepEqual(cuts, ['80 DENY connection closed due to policy change'])
})

test('revoked are those whose chain is; the chain may become known later', () => {
  const { tracker, connection, cuts } = world()
  const chains = new Map<number, readonly never[]>([[80, []]])
  tracker.track(connection(80, { peerChain: () => chains.get(80) }))
  tracker.track(connection(81, { peerChain: () => chains.get(81) }))
  tracker.cutRevoked(() => true)
  assert.deepEqual(cuts, ['80 CERT_REVOKED connection closed: peer certificate revoked by CRL'])
  chains.set(81, [])
  tracker.cutRevoked(() => false)
  assert.equal(cuts.length, 1)
  tracker.cutRevoked(() => true)
  assert.match(cuts.at(-1) ?? '', /^81 CERT_REVOKED/)
})

test('it is empty when the last connection has ended, and judges nothing once it is closed', async () => {
  const { state, tracker, connection, cuts } = world()
  const [first, second] = [tracker.track(connection(80)), tracker.track(connection(81))]
  assert.equal(tracker.list().length, 2)
  let empty = false
  const waiting = tracker.empty().then(() => {
    empty = true
  })
  first()
  await Promise.resolve()
  assert.equal(empty, false)
  second()
  await waiting
  await tracker.empty()
  tracker.track(connection(82))
  tracker.close()
  push(state, `policies: [${denyPort('p', 82)}]`)
  assert.deepEqual(cuts, [])
})

test('a policy that is missing is told once, until policies change', () => {
  const { state, tracker } = world()
  assert.deepEqual(
    [tracker.isNewlyMissed('ns/p'), tracker.isNewlyMissed('ns/p'), tracker.isNewlyMissed('ns/q')],
    [true, false, true],
  )
  push(state, `workloads: [${workload('ns/p')}]`)
  assert.equal(tracker.isNewlyMissed('ns/p'), false)
  push(state, `policies: [${denyPort('other', 80)}]`)
  assert.equal(tracker.isNewlyMissed('ns/p'), true)
})
