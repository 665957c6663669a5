import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KubeError } from '../kube/index.ts'
import { pendingWork } from './pending-work.ts'

test('what is refused for a moment, as by a server that has only just started, is done all the same', async () => {
  const stop = new AbortController()
  const attempts: number[] = []
  let refusals = 3
  const work = pendingWork(
    async () => {
      refusals -= 1
      if (refusals >= 0) throw new KubeError('not yet', { code: 403, reason: 'Forbidden' })
      stop.abort()
    },
    (_key, _error, attempt) => attempts.push(attempt),
    1,
  )
  work.add('one')
  // Its retries do not keep a process alive by themselves.
  const alive = setInterval(() => {}, 1_000)
  await work.run(stop.signal)
  clearInterval(alive)
  assert.deepEqual(attempts, [1, 2, 3])
})
