import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { type CallMessage, type Calls, createCalls } from './calls.ts'

type Question =
  | { readonly kind: 'double'; readonly value: number }
  | { readonly kind: 'fail'; readonly code?: string }
  | { readonly kind: 'wait' }

interface Answers extends Record<Question['kind'], unknown> {
  readonly double: number
  readonly fail: undefined
  readonly wait: undefined
}

type Side = Calls<Question, Answers, Question>

/** Two sides of one channel; what the second is asked to wait for ends with its signal only. */
function pair() {
  const { port1, port2 } = new MessageChannel()
  const aborted: unknown[] = []
  const posted: CallMessage<unknown>[] = []
  const sideOf = (port: typeof port1): Side => {
    const side: Side = createCalls<Question, Answers, Question>({
      post(message) {
        posted.push(message)
        port.postMessage(message)
      },
      async serve(call, signal) {
        switch (call.kind) {
          case 'double':
            return call.value * 2
          case 'fail':
            throw Object.assign(new Error('it is broken'), call.code === undefined ? {} : { code: call.code })
          case 'wait':
            return await new Promise((_, reject) => {
              signal.addEventListener('abort', () => {
                aborted.push(call.kind)
                reject(new Error('no longer needed'))
              })
            })
        }
      },
    })
    port.on('message', side.receive)
    return side
  }
  return {
    first: sideOf(port1),
    second: sideOf(port2),
    aborted,
    posted,
    [Symbol.dispose]() {
      port1.close()
    },
  }
}

test('each call gets its own answer, in both directions at once', async () => {
  using sides = pair()
  const answers = await Promise.all([
    sides.first.call({ kind: 'double', value: 1 }),
    sides.second.call({ kind: 'double', value: 2 }),
    sides.first.call({ kind: 'double', value: 3 }),
  ])
  assert.deepEqual(answers, [2, 4, 6])
})

test('an error crosses by its code and message', async () => {
  using sides = pair()
  await assert.rejects(sides.first.call({ kind: 'fail', code: 'BROKEN' }), { code: 'BROKEN', message: 'it is broken' })
  await assert.rejects(sides.first.call({ kind: 'fail' }), { code: 'FAILED', message: 'it is broken' })
})

test('a call without an answer in time is an error, and is no longer worked on', async () => {
  using sides = pair()
  await assert.rejects(sides.first.call({ kind: 'wait' }, { timeoutMs: 5 }), { code: 'TIMEOUT' })
  assert.equal(await sides.first.call({ kind: 'double', value: 1 }), 2)
  assert.deepEqual(sides.aborted, ['wait'])
})

test('who aborts is told at once; an answer that is under way then is nobody’s', async () => {
  using sides = pair()
  const controller = new AbortController()
  const waiting = sides.first.call({ kind: 'wait' }, { signal: controller.signal })
  controller.abort()
  await assert.rejects(waiting, { code: 'ABORTED' })
  await assert.rejects(sides.first.call({ kind: 'wait' }, { signal: controller.signal }), { code: 'ABORTED' })
  assert.equal(await sides.first.call({ kind: 'double', value: 2 }), 4)
  assert.deepEqual(sides.aborted, ['wait'])
  assert.equal(sides.posted.filter(({ kind }) => kind === 'call').length, 2)
})

test('when the channel has ended, what waits and what comes later is refused with the reason', async () => {
  using sides = pair()
  const waiting = sides.first.call({ kind: 'wait' })
  sides.first.end('worker 0 ended')
  const refused = { code: 'ENDED', message: 'worker 0 ended' }
  await assert.rejects(waiting, refused)
  await assert.rejects(sides.first.call({ kind: 'double', value: 1 }), refused)
})
