import assert from 'node:assert/strict'
import { openSync } from 'node:fs'
import { test } from 'node:test'
import { createPods, type PodChange } from './index.ts'

/** Any two files stand for two namespaces: they differ in inode as namespaces do. */
const places = { a: import.meta.filename, b: process.execPath }

/** `settle`: of the starts of blocked pods. */
function world(settle: () => Promise<void> = () => Promise.resolve()) {
  const blocked = new Set<string>()
  const stopped: string[] = []
  const changes: PodChange[] = []
  const attempts: string[] = []
  let starts = 0
  const pods = createPods({
    retryMs: 5,
    onChange: (change) => changes.push(change),
    async start(pod) {
      if (blocked.has(pod.name)) {
        attempts.push(pod.name)
        await settle()
        throw new Error('failed to bind to address [::]:15008')
      }
      starts += 1
      return {
        drain: async () => undefined,
        stop: async () => void stopped.push(pod.name),
      }
    },
  })
  const add = (uid: string, place: keyof typeof places = 'a') =>
    pods.handle({
      kind: 'add',
      uid,
      pod: { name: uid, namespace: 'default', serviceAccount: 'default' },
      namespaceFd: openSync(places[place], 'r'),
    })
  return { pods, add, blocked, stopped, changes, attempts, starts: () => starts }
}

test('ready is: the snapshot is complete and nothing is pending', async () => {
  const { pods, add } = world()
  await add('one')
  assert.equal(pods.ready, false)
  await pods.handle({ kind: 'snapshot-sent' })
  assert.equal(pods.ready, true)
  pods.beginStream()
  assert.equal(pods.ready, false)
})

test('the same pod twice is started once; in another namespace it is started again', async () => {
  const { add, stopped, starts } = world()
  await add('one')
  await add('one')
  assert.equal(starts(), 1)
  await add('one', 'b')
  assert.equal(starts(), 2)
  assert.deepEqual(stopped, ['one'])
})

test('a pod that cannot be started is answered so, and tried again until it can', async () => {
  const { pods, add, blocked } = world()
  blocked.add('one')
  assert.match((await add('one')) ?? '', /^failure to start proxy : failed to bind/)
  await pods.handle({ kind: 'snapshot-sent' })
  assert.equal(pods.ready, false)
  blocked.delete('one')
  await new Promise<void>((resolve) => {
    pods.onRetry(() => {
      if (pods.ready) resolve()
    })
  })
  assert.deepEqual(
    pods.list().map(({ uid, state }) => [uid, state]),
    [['one', 'Up']],
  )
})

test('a message waits for one attempt at most, however many pods are pending and however long an attempt takes', async (context) => {
  let settleNext: (() => void) | undefined
  let isSlow = false
  const { pods, add, blocked, attempts } = world(() =>
    isSlow ? new Promise((done) => (settleNext = done)) : Promise.resolve(),
  )
  context.after(() => pods.stop('the test ends'))
  await pods.handle({ kind: 'snapshot-sent' })
  const uids = Array.from({ length: 20 }, (_, index) => `pending-${index}`)
  for (const uid of uids) {
    blocked.add(uid)
    await add(uid)
  }
  isSlow = true
  attempts.length = 0
  while (settleNext === undefined) await new Promise((resolve) => setImmediate(resolve))
  // Many rounds could have begun meanwhile.
  await new Promise((resolve) => setTimeout(resolve, 50))
  const served = add('fine')
  const settleFirst = settleNext
  isSlow = false
  settleFirst()
  assert.equal(await served, undefined)
  assert.deepEqual(attempts, ['pending-0'])
})

test('an attempt that fails when all has ended leaves nothing behind', async () => {
  const failing = Promise.withResolvers<void>()
  const { pods, add, blocked, attempts } = world(() => failing.promise)
  blocked.add('one')
  const added = add('one')
  while (attempts.length === 0) await new Promise((resolve) => setImmediate(resolve))
  await pods.stop('the process ends')
  failing.resolve()
  assert.match((await added) ?? '', /^failure to start proxy/)
  assert.deepEqual(pods.list(), [])
  const timers = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout')
  assert.deepEqual(timers, [])
})

test('a pod deleted while pending is not tried again', async () => {
  const { pods, add, blocked, starts } = world()
  blocked.add('one')
  await pods.handle({ kind: 'snapshot-sent' })
  await add('one')
  await pods.handle({ kind: 'delete', uid: 'one' })
  assert.equal(pods.ready, true)
  assert.equal(starts(), 0)
  assert.deepEqual(pods.list(), [])
})

test('a new snapshot stops the pods it does not name, and keeps those it keeps', async () => {
  const { pods, add, stopped } = world()
  await add('one')
  await add('two')
  await add('three')
  await pods.handle({ kind: 'snapshot-sent' })
  pods.beginStream()
  await pods.handle({ kind: 'keep', uid: 'one' })
  await add('two')
  assert.deepEqual(stopped, [])
  await pods.handle({ kind: 'snapshot-sent' })
  assert.deepEqual(stopped, ['three'])
})

test('what breaks the protocol is an error', async () => {
  const { pods } = world()
  await pods.handle({ kind: 'snapshot-sent' })
  await assert.rejects(pods.handle({ kind: 'snapshot-sent' }), /pod snapshot received already/)
  await assert.rejects(pods.handle({ kind: 'keep', uid: 'one' }), /pod keep received after snapshot/)
  const namespaceFd = openSync(places.a, 'r')
  await assert.rejects(pods.handle({ kind: 'add', uid: 'x', pod: undefined, namespaceFd }), /without workload info/)
})
