import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LiveConnection } from '../dataplane/index.ts'
import type { CallOptions } from './calls.ts'
import { CallError } from './errors.ts'
import type { WorkerCall } from './messages.ts'
import { createServedPods } from './served-pods.ts'

const pod = { name: 'a', namespace: 'default', serviceAccount: 'a' }
const connection: LiveConnection = {
  direction: 'outbound',
  from: { ip: '10.0.0.1', port: 1 },
  originalDestination: undefined,
  actualDestination: { ip: '10.0.0.2', port: 2 },
  protocol: 'TCP',
}

/** Workers that note what they are told; `answer` decides over what they are asked. */
function world(
  sharePorts: boolean,
  answer: (worker: number, call: WorkerCall) => unknown = () => undefined,
  still: readonly number[] = [],
) {
  const told: string[] = []
  const timeouts: (number | undefined)[] = []
  const workers = [0, 1].map((index) => ({
    index,
    call: (async (call: WorkerCall, options?: CallOptions) => {
      timeouts.push(options?.timeoutMs)
      told.push(`${index} ${call.kind}`)
      return answer(index, call)
    }) as never,
  }))
  return { told, timeouts, pods: createServedPods({ workers, sharePorts, stuck: () => still }) }
}

test('a pod is served by every worker, and ends on every worker, once', async () => {
  const { told, pods } = world(true)
  const served = await pods.start({ pod, listeners: 'all' })
  await served.drain()
  await served.stop('reason')
  await served.stop('again')
  assert.deepEqual(told, ['0 start-pod', '1 start-pod', '0 drain-pod', '1 drain-pod', '0 stop-pod', '1 stop-pod'])
})

test('where one worker cannot serve a pod, none is left serving it', async () => {
  const { told, pods } = world(true, (worker, { kind }) => {
    if (worker === 1 && kind === 'start-pod') throw new CallError('FAILED', 'failed to bind to address [::]:15008')
  })
  await assert.rejects(pods.start({ pod, listeners: 'all' }), { message: 'failed to bind to address [::]:15008' })
  assert.deepEqual(told.slice(2), ['0 stop-pod', '1 stop-pod'])
})

test('a worker that does not answer is named', async () => {
  const { pods } = world(true, (worker) => {
    if (worker === 1) throw new CallError('TIMEOUT', 'no answer in 10000 ms: start-pod')
  })
  await assert.rejects(pods.start({ pod, listeners: 'all' }), { message: /^worker 1: no answer/ })
})

test('one that stands still gets less time to take up a pod', async () => {
  const { timeouts, pods } = world(true, () => undefined, [1])
  await pods.start({ pod, listeners: 'all' })
  assert.deepEqual(timeouts, [4_000, 3_000])
})

test('one that stands still is told to stop a pod, and not waited for', async () => {
  const still: number[] = []
  const never = new Promise(() => undefined)
  const { told, pods } = world(
    true,
    (worker, { kind }) => (worker === 1 && kind === 'stop-pod' ? never : undefined),
    still,
  )
  const served = await pods.start({ pod, listeners: 'all' })
  still.push(1)
  await served.stop('reason')
  assert.deepEqual(told.slice(2), ['0 stop-pod', '1 stop-pod'])
})

test('without shared ports a pod is given to one that goes on', async () => {
  const { told, pods } = world(false, () => undefined, [0])
  await pods.start({ pod, listeners: 'all' })
  await pods.start({ pod, listeners: 'all' })
  assert.deepEqual(told, ['1 start-pod', '1 start-pod'])
})

test('without shared ports each pod has one worker, and they are spread', async () => {
  const { told, pods } = world(false)
  const first = await pods.start({ pod, listeners: 'all' })
  await pods.start({ pod, listeners: 'all' })
  await first.stop('reason')
  await pods.start({ pod, listeners: 'all' })
  assert.deepEqual(told, ['0 start-pod', '1 start-pod', '0 stop-pod', '0 start-pod'])
})

test('connections are those of all workers; one that is silent is named', async () => {
  const all = world(true, () => new Map([[1, [connection]]]))
  assert.deepEqual(await all.pods.connections(), { byPod: new Map([[1, [connection, connection]]]), silent: [] })
  const some = world(true, (worker) => {
    if (worker === 0) throw new CallError('TIMEOUT', 'no answer')
    return new Map([[1, [connection]]])
  })
  assert.deepEqual(await some.pods.connections(), { byPod: new Map([[1, [connection]]]), silent: [0] })
})
