import assert from 'node:assert/strict'
import test from 'node:test'
import { type ContainerView, nextSteps, restartDelayMs } from './steps.ts'
import { containersOf, type PodSpec } from './types.ts'

const now = 1_000_000
const none: ContainerView = { run: { kind: 'none' }, restarts: 0, started: false }
const running: ContainerView = { run: { kind: 'running' }, restarts: 0, started: true }
const starting: ContainerView = { ...running, started: false }
const exited = (exitCode: number, restarts = 0, agoMs = 100): ContainerView => ({
  run: { kind: 'exited', exitCode, startedAtMs: now - agoMs - 50, finishedAtMs: now - agoMs },
  restarts,
  started: false,
})

const spec = (restartPolicy: PodSpec['restartPolicy'], withInit = false): PodSpec => ({
  ...(restartPolicy && { restartPolicy }),
  ...(withInit && {
    initContainers: [{ name: 'init' }, { name: 'side', restartPolicy: 'Always' }, { name: 'init2' }],
  }),
  containers: [{ name: 'a' }, { name: 'b' }],
})

const steps = (pod: PodSpec, views: Record<string, ContainerView>) =>
  nextSteps(pod, containersOf(pod), new Map(Object.entries(views)), now)

test('containers of a new pod start together', () => {
  const { start, phase } = steps(spec('Always'), {})
  assert.deepEqual([start, phase], [['a', 'b'], 'Pending'])
})

const initOrder: readonly [string, Record<string, ContainerView>, string[], boolean][] = [
  ['nothing ran', {}, ['init'], false],
  ['the first init container runs', { init: running }, [], false],
  ['the first init container is done', { init: exited(0) }, ['side'], false],
  ['the sidecar is starting', { init: exited(0), side: starting }, [], false],
  ['the sidecar has started', { init: exited(0), side: running }, ['init2'], false],
  ['the last init container is done', { init: exited(0), side: running, init2: exited(0) }, ['a', 'b'], true],
]
for (const [when, views, expected, initialized] of initOrder) {
  test(`init containers and sidecars go in order: ${when}`, () => {
    const result = steps(spec('Always', true), views)
    assert.deepEqual([result.start, result.initialized], [expected, initialized])
  })
}

test('a sidecar that ended is started again beside running containers', () => {
  const views = { init: exited(0), side: exited(1), init2: exited(0), a: running, b: running }
  const { start, phase } = steps(spec('Always', true), views)
  assert.deepEqual([start, phase], [['side'], 'Running'])
})

test('a failed init container fails a pod that is never restarted', () => {
  assert.equal(steps(spec('Never', true), { init: exited(1) }).phase, 'Failed')
  assert.deepEqual(steps(spec('OnFailure', true), { init: exited(1) }).start, ['init'])
})

test('the first restart is at once, the next ones wait longer and longer, up to a minute', () => {
  assert.deepEqual([0, 1, 2, 3, 10].map(restartDelayMs), [0, 1000, 2000, 4000, 60_000])
  const { start, backingOff, wakeAtMs } = steps(spec('Always'), { a: exited(1, 2), b: running })
  assert.deepEqual([start, [...backingOff], wakeAtMs], [[], ['a'], now - 100 + 2000])
})

test('a long good run is forgiven', () => {
  const view: ContainerView = {
    run: { kind: 'exited', exitCode: 1, startedAtMs: now - 700_000, finishedAtMs: now - 1 },
    restarts: 9,
    started: false,
  }
  assert.deepEqual(steps(spec('Always'), { a: view, b: running }).start, ['a'])
})

const ends: readonly [NonNullable<PodSpec['restartPolicy']>, number, number, string[], string][] = [
  ['Never', 0, 0, [], 'Succeeded'],
  ['Never', 0, 2, [], 'Failed'],
  ['OnFailure', 0, 0, [], 'Succeeded'],
  ['OnFailure', 0, 2, ['b'], 'Running'],
  ['Always', 0, 0, ['a', 'b'], 'Running'],
]
for (const [policy, a, b, start, phase] of ends) {
  test(`policy ${policy} after codes ${a} and ${b}: ${phase}`, () => {
    const result = steps(spec(policy), { a: exited(a), b: exited(b) })
    assert.deepEqual([result.start, result.phase], [start, phase])
  })
}

test('sidecars are ended when the work is done, and only then the pod is over', () => {
  const done = { init: exited(0), init2: exited(0), a: exited(0), b: exited(0) }
  const before = steps(spec('Never', true), { ...done, side: running })
  assert.deepEqual([before.stop, before.phase], [['side'], 'Running'])
  assert.equal(steps(spec('Never', true), { ...done, side: exited(143) }).phase, 'Succeeded')
})

test('one container that runs is enough for a running pod only when all have started', () => {
  assert.equal(steps(spec('Always'), { a: running }).phase, 'Pending')
  assert.equal(steps(spec('Always'), { a: running, b: none }).phase, 'Pending')
})
