import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogging } from '../../observability/index.ts'
import { createWorkQueue } from './queue.ts'

const log = silentLogging().scope('test')

test('a key added while it is worked on is worked on once more, never twice at a time', async () => {
  const started: PromiseWithResolvers<void>[] = []
  let running = 0
  let most = 0
  const second = Promise.withResolvers<void>()
  const queue = createWorkQueue({
    name: 'test',
    log,
    async work() {
      running += 1
      most = Math.max(most, running)
      const gate = Promise.withResolvers<void>()
      started.push(gate)
      if (started.length === 2) second.resolve()
      await gate.promise
      running -= 1
      return undefined
    },
  })
  queue.add('a')
  queue.add('a')
  queue.add('a')
  assert.equal(started.length, 1)
  started[0]?.resolve()
  await second.promise
  assert.equal(most, 1)
  started[1]?.resolve()
  await queue[Symbol.asyncDispose]()
  assert.equal(started.length, 2)
})

test('a failure is tried again, and a time that work asks for is kept', async () => {
  const done = Promise.withResolvers<void>()
  let count = 0
  const queue = createWorkQueue({
    name: 'test',
    log,
    async work() {
      count += 1
      if (count === 1) throw new Error('not yet')
      if (count === 2) return 10
      done.resolve()
      return undefined
    },
  })
  queue.add('a')
  await done.promise
  await queue[Symbol.asyncDispose]()
  assert.equal(count, 3)
})

test('no more than `concurrency` keys are worked on at a time, and none after the end', async () => {
  const gates: PromiseWithResolvers<void>[] = []
  const queue = createWorkQueue({
    name: 'test',
    log,
    concurrency: 2,
    async work() {
      const gate = Promise.withResolvers<void>()
      gates.push(gate)
      await gate.promise
      return undefined
    },
  })
  for (const key of ['a', 'b', 'c']) queue.add(key)
  assert.equal(gates.length, 2)
  const closed = queue[Symbol.asyncDispose]()
  for (const gate of gates) gate.resolve()
  await closed
  assert.equal(gates.length, 2)
})
