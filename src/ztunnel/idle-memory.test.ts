import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { releaseIdleMemory } from './idle-memory.ts'

const megabyte = 1024 * 1024

test('what a load left behind is released once nothing is going on, and only when it has grown again', () => {
  mock.timers.enable({ apis: ['setInterval'] })
  try {
    const thread = { utilization: 0.5, heapBytes: 200 * megabyte, releases: 0 }
    using _ = releaseIdleMemory({
      checkMs: 1000,
      utilization: () => thread.utilization,
      heapBytes: () => thread.heapBytes,
      release() {
        thread.releases += 1
        thread.heapBytes = 20 * megabyte
      },
    })
    mock.timers.tick(3000)
    assert.equal(thread.releases, 0, 'at work')
    thread.utilization = 0.01
    mock.timers.tick(1000)
    assert.equal(thread.releases, 1)
    thread.heapBytes = 30 * megabyte
    mock.timers.tick(5000)
    assert.equal(thread.releases, 1, 'not worth it')
    thread.heapBytes = 40 * megabyte
    mock.timers.tick(1000)
    assert.equal(thread.releases, 2)
  } finally {
    mock.timers.reset()
  }
})

test('after its end nothing is looked at', () => {
  mock.timers.enable({ apis: ['setInterval'] })
  try {
    let looks = 0
    const watching = releaseIdleMemory({
      checkMs: 1000,
      heapBytes: () => 0,
      release: () => undefined,
      utilization() {
        looks += 1
        return 0
      },
    })
    mock.timers.tick(1000)
    watching[Symbol.dispose]()
    mock.timers.tick(5000)
    assert.equal(looks, 1)
  } finally {
    mock.timers.reset()
  }
})
