import assert from 'node:assert/strict'
import { mock, type TestContext, test } from 'node:test'
import { releaseWhenIdle } from './idle-memory.ts'

const megabyte = 1024 * 1024

function watchedThread(t: TestContext) {
  mock.timers.enable({ apis: ['setInterval'] })
  t.after(() => mock.timers.reset())
  const thread = { utilization: 0.5, bytes: 200 * megabyte, looks: 0, releases: 0, isMoreLikely: false }
  const watching = releaseWhenIdle({
    checkMs: 1000,
    leastBytes: 16 * megabyte,
    idleBelow: 0.02,
    utilization() {
      thread.looks += 1
      return thread.utilization
    },
    bytes: () => thread.bytes,
    release() {
      thread.releases += 1
      thread.bytes = 20 * megabyte
      return thread.isMoreLikely
    },
  })
  return { thread, watching }
}

test('what a load left behind is released once nothing is going on, and only when it has grown again', (t) => {
  const { thread, watching } = watchedThread(t)
  using _ = watching
  mock.timers.tick(3000)
  assert.equal(thread.releases, 0, 'at work')
  thread.utilization = 0.01
  mock.timers.tick(1000)
  assert.equal(thread.releases, 1)
  thread.bytes = 30 * megabyte
  mock.timers.tick(5000)
  assert.equal(thread.releases, 1, 'not worth it')
  thread.bytes = 40 * megabyte
  mock.timers.tick(1000)
  assert.equal(thread.releases, 2)
})

test('as long as a release gave back much, it is tried again', (t) => {
  const { thread, watching } = watchedThread(t)
  using _ = watching
  Object.assign(thread, { utilization: 0, isMoreLikely: true })
  mock.timers.tick(2000)
  assert.equal(thread.releases, 2)
  thread.isMoreLikely = false
  mock.timers.tick(5000)
  assert.equal(thread.releases, 3)
})

test('after its end nothing is looked at', (t) => {
  const { thread, watching } = watchedThread(t)
  mock.timers.tick(1000)
  watching[Symbol.dispose]()
  mock.timers.tick(5000)
  assert.equal(thread.looks, 1)
})
