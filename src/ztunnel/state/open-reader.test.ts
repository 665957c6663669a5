import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { parseLocalFile } from './local-file.ts'
import { openMeshReader } from './open-reader.ts'
import { createMeshState } from './store.ts'

const content = (text: string) => parseLocalFile(text)
const pod = { name: 'web-0', namespace: 'shop', serviceAccount: 'web' }
const web = (ip: string) =>
  `{uid: web, name: web-0, namespace: shop, serviceAccount: web, node: n1, workloadIps: [${ip}], services: {}}`

test('a reader sees a push when it moves to it, and tells its listeners what kinds of things changed', () => {
  const state = createMeshState({ readers: 1 })
  state.replace(content(`workloads: [${web('10.0.0.1')}]`))
  const reader = openMeshReader(state.memory, 0)
  assert.deepEqual(reader.workloadByAddress('', '10.0.0.1'), state.workload('web'))
  const signals: unknown[] = []
  reader.onChange((signal) => signals.push(signal))
  const end = state.onPublish((publication) => {
    assert.equal(reader.workload('web')?.addresses[0], '10.0.0.1')
    reader.advance(publication)
    reader.advance(publication)
  })
  state.apply(content(`workloads: [${web('10.0.0.2')}]`))
  assert.equal(reader.workloadByAddress('', '10.0.0.1'), undefined)
  assert.equal(reader.workloadByAddress('', '10.0.0.2')?.uid, 'web')
  end()
  state.apply({ removedAddresses: ['web'] })
  assert.equal(reader.workload('web')?.uid, 'web')
  assert.deepEqual(signals, [{ workloads: true, services: false, policies: false }])
})

test('what a reader decoded is the same object until it changes', () => {
  const state = createMeshState({ readers: 1 })
  state.replace(content(`{workloads: [${web('10.0.0.1')}], services: [${service}]}`))
  const reader = openMeshReader(state.memory, 0)
  state.onPublish(reader.advance)
  const [workload, web80] = [reader.localWorkload(pod), reader.service('shop/web.example')]
  assert.ok(web80)
  const endpoints = reader.endpoints(web80)
  state.apply(content('workloads: [{uid: other, namespace: shop, workloadIps: [10.0.0.9], services: {}}]'))
  assert.equal(reader.localWorkload(pod), workload)
  assert.equal(reader.service('shop/web.example'), web80)
  assert.equal(reader.endpoints(web80), endpoints)
  state.apply(content(`workloads: [${web('10.0.0.2')}]`))
  assert.notEqual(reader.localWorkload(pod), workload)
})

const service = '{name: web, namespace: shop, hostname: web.example, vips: [/10.1.0.1], ports: {80: 80}}'

test('a reader waits for the workload of its pod', async () => {
  const state = createMeshState({ readers: 1 })
  const reader = openMeshReader(state.memory, 0)
  state.onPublish(reader.advance)
  const waiting = reader.waitForLocalWorkload(pod)
  state.apply(content(`workloads: [${web('10.0.0.1')}]`))
  assert.equal((await waiting).uid, 'web')
})

test('an iteration that outlives its generation ends with an error instead of reading what is something else by now', () => {
  const state = createMeshState()
  state.replace(content(`workloads: [${web('10.0.0.1')}, {uid: b, namespace: n, workloadIps: [], services: {}}]`))
  const workloads = state.workloads()[Symbol.iterator]()
  workloads.next()
  state.apply({ removedAddresses: ['b'] })
  assert.throws(() => workloads.next(), { code: 'CONTENT_MOVED' })
})

test('a push that has no room is refused as a whole, and the state before stays in force', () => {
  const state = createMeshState({ limitBytes: 2 * 1024 * 1024 })
  state.replace(content(`workloads: [${web('10.0.0.1')}]`))
  const many = Array.from({ length: 20_000 }, (_, index) => ({
    uid: `uid-${index}`,
    namespace: 'n',
    workloadIps: [],
    services: {},
  }))
  let told = 0
  state.subscribe(() => {
    told += 1
  })
  assert.throws(() => state.apply(content(JSON.stringify({ workloads: many }))), { code: 'OUT_OF_MEMORY' })
  assert.equal(told, 0)
  assert.deepEqual(
    [...state.workloads()].map((one) => one.uid),
    ['web'],
  )
  state.apply({ removedAddresses: ['web'] })
  assert.equal(told, 1)
})

test('what only takes things out has room when nothing else has, be it one or all', () => {
  const fill = (state: ReturnType<typeof createMeshState>) => {
    const uids: string[] = []
    const push = (count: number) => {
      const workloads = Array.from({ length: count }, (_, index) => ({
        uid: `uid-${uids.length + index}`,
        name: `name-${uids.length + index}`,
        namespace: `n${index % 10}`,
        workloadIps: [`10.${count % 7}.${(uids.length + index) >> 8}.${index & 255}`],
        services: { [`n/s${index % 5}.example`]: { 80: 8080 } },
      }))
      state.apply(content(JSON.stringify({ workloads })))
      uids.push(...workloads.map(({ uid }) => uid))
    }
    for (const count of [200, 1]) {
      assert.throws(
        () => {
          for (;;) push(count)
        },
        { code: 'OUT_OF_MEMORY' },
      )
    }
    return uids
  }
  for (const readers of [0, 1]) {
    const state = createMeshState({ limitBytes: 3 * 1024 * 1024, readers })
    const reader = readers === 0 ? undefined : openMeshReader(state.memory, 0)
    state.onPublish((publication) => reader?.advance(publication))
    for (let round = 0; round < 2; round += 1) {
      const uids = fill(state)
      assert.ok(uids.length > 400, `${uids.length}`)
      for (const uid of uids.splice(0, 5)) state.apply({ removedAddresses: [uid] })
      state.apply({ removedAddresses: uids })
      assert.deepEqual([...state.workloads()], [])
    }
  }
})

test('threads read one consistent mesh while it is pushed to thousands of times', { timeout: 60_000 }, async () => {
  const readers = 2
  const pushes = 3000
  const state = createMeshState({ readers })
  const version = (number: number) => {
    const services = { [`n/s${number % 7}.example`]: { 80: number } }
    const workloads = Array.from({ length: 20 }, (_, index) => ({
      uid: `w${index}`,
      name: `v${number}`,
      namespace: 'n',
      workloadIps: [`10.0.${number & 255}.${index}`],
      hostname: `x${'y'.repeat(number % 300)}`,
      services,
    }))
    return content(JSON.stringify({ workloads }))
  }
  state.replace(version(0))
  const script = new URL('../../../test/support/mesh-reading-thread.ts', import.meta.url)
  const threads = Array.from(
    { length: readers },
    (_, reader) => new Worker(script, { workerData: { memory: state.memory, reader } }),
  )
  await Promise.all(threads.map((thread) => once(thread, 'message')))
  state.onPublish((publication) => {
    for (const thread of threads) thread.postMessage(publication)
  })
  const contents = Array.from({ length: 600 }, (_, index) => version(index + 1))
  const results = threads.map((thread) => once(thread, 'message'))
  for (let push = 1; push <= pushes; push += 1) {
    const workloads = contents[push % contents.length]?.workloads ?? []
    state.apply(push % 5 === 0 ? { workloads, removedAddresses: ['w19'] } : { workloads })
    if (push % 20 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  for (const thread of threads) thread.postMessage('end')
  for (const [result] of await Promise.all(results)) {
    assert.equal(result.failure, undefined)
    assert.equal(result.generation, pushes)
    assert.ok(result.reads > pushes)
  }
  await Promise.all(threads.map((thread) => thread.terminate()))
  assert.equal(state.usage().waitingBlocks, 0)
})
