import assert from 'node:assert/strict'
import test from 'node:test'
import { countProbe, noProbes } from './probe-state.ts'
import { type ContainerState, mergeConditions, type PodState, podStatus } from './status.ts'
import { containersOf, type Pod } from './types.ts'

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c', image: 'host' }] },
}
const running = (ready: boolean): ContainerState => ({
  state: { kind: 'running', startedAt: 't0' },
  ready,
  started: true,
  restarts: 2,
  containerID: 'lateen://x',
})
const statusOf = (container: ContainerState | undefined, more: Partial<PodState> = {}, of = pod) =>
  podStatus(
    of,
    containersOf(of.spec ?? { containers: [] }),
    {
      phase: 'Running',
      initialized: true,
      sandboxReady: true,
      hostIPs: ['172.28.0.11'],
      podIPs: ['10.244.0.2'],
      startTime: 't0',
      containers: new Map(container === undefined ? [] : [['c', container]]),
      ...more,
    },
    't1',
  )
const conditionOf = (status: ReturnType<typeof statusOf>, type: string) =>
  status.conditions?.find((condition) => condition.type === type)

test('a ready container makes a ready pod', () => {
  const status = statusOf(running(true))
  assert.equal(conditionOf(status, 'Ready')?.status, 'True')
  assert.deepEqual(status.podIPs, [{ ip: '10.244.0.2' }])
  assert.deepEqual(status.containerStatuses?.[0]?.state, { running: { startedAt: 't0' } })
  assert.equal(status.containerStatuses?.[0]?.restartCount, 2)
})

test('the reason of an unready pod names its containers', () => {
  const ready = conditionOf(statusOf(running(false)), 'Ready')
  assert.deepEqual([ready?.status, ready?.message], ['False', 'containers with unready status: [c]'])
})

test('a readiness gate keeps the pod unready until its condition is true', () => {
  const gated: Pod = {
    ...pod,
    spec: { containers: pod.spec?.containers ?? [], readinessGates: [{ conditionType: 'g' }] },
  }
  assert.equal(conditionOf(statusOf(running(true), {}, gated), 'Ready')?.status, 'False')
  const open: Pod = { ...gated, status: { conditions: [{ type: 'g', status: 'True' }] } }
  const status = statusOf(running(true), {}, open)
  assert.equal(conditionOf(status, 'Ready')?.status, 'True')
  assert.equal(conditionOf(status, 'g')?.status, 'True', 'conditions of others are kept')
})

test('a container that was not started says why it waits', () => {
  assert.deepEqual(statusOf(undefined, { phase: 'Pending' }).containerStatuses?.[0]?.state, {
    waiting: { reason: 'PodInitializing' },
  })
})

test('the time of a transition changes only with the status', () => {
  const old = [{ type: 'Ready', status: 'True' as const, lastTransitionTime: 't0' }]
  assert.equal(mergeConditions(old, [{ type: 'Ready', status: 'True' }], 't1')[0]?.lastTransitionTime, 't0')
  assert.equal(mergeConditions(old, [{ type: 'Ready', status: 'False' }], 't1')[0]?.lastTransitionTime, 't1')
})

test('probes count in a row, by threshold', () => {
  const probe = { failureThreshold: 2, successThreshold: 1 }
  const outcomes = [true, false, true, false, false]
  const results: (boolean | undefined)[] = []
  let count = noProbes
  for (const outcome of outcomes) {
    count = countProbe(count, outcome, probe)
    results.push(count.result)
  }
  assert.deepEqual(results, [true, true, true, true, false])
})
