import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseLocalFile } from './local-file.ts'
import { createMeshState } from './store.ts'

const pods = (count: number, revision: string) =>
  parseLocalFile(
    JSON.stringify({
      workloads: Array.from({ length: count }, (_, index) => ({
        uid: `pod-${index}`,
        namespace: 'n',
        workloadIps: [],
        canonicalName: 'app',
        canonicalRevision: revision,
        workloadName: 'x'.repeat(1000),
        services: {},
      })),
    }),
  ).workloads

test('what pods have in common is stored once, goes with the last of them, and comes back', () => {
  const state = createMeshState()
  const empty = state.usage().usedBytes
  for (let round = 0; round < 3; round += 1) {
    state.apply({ workloads: pods(100, 'v1') })
    assert.ok(state.usage().usedBytes - empty < 100 * 600)
    state.apply({ workloads: pods(60, 'v2') })
    assert.equal(state.workload('pod-0')?.canonicalRevision, 'v2')
    assert.equal(state.workload('pod-99')?.canonicalRevision, 'v1')
    assert.equal(state.workload('pod-99')?.workloadName, 'x'.repeat(1000))
    state.apply({ removedAddresses: Array.from({ length: 100 }, (_, index) => `pod-${index}`) })
    assert.equal(state.usage().usedBytes, empty)
  }
})

test('a push that fails leaves the counts as they were', () => {
  const state = createMeshState()
  state.apply({ workloads: pods(2, 'v1') })
  const before = state.usage().usedBytes
  const failing = function* () {
    yield* pods(2, 'v2')
    throw new Error('unreadable')
  }
  assert.throws(() => state.apply({ workloads: failing() }), /unreadable/)
  assert.equal(state.usage().usedBytes, before)
  state.apply({ workloads: pods(1, 'v2'), removedAddresses: ['pod-1'] })
  assert.equal(state.workload('pod-0')?.canonicalRevision, 'v2')
  state.apply({ workloads: pods(1, 'v2') })
  state.apply({ removedAddresses: ['pod-0'] })
  assert.ok(state.usage().usedBytes < before)
  state.apply({ workloads: pods(2, 'v1') })
  assert.equal(state.usage().usedBytes, before)
})
