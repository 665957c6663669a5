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
    { retryMs: 1 },
  )
  work.add('one')
  // Its retries do not keep a process alive by themselves.
  const alive = setInterval(() => {}, 1_000)
  await work.run(stop.signal)
  clearInterval(alive)
  assert.deepEqual(attempts, [1, 2, 3])
})

test('so many keys are done at once, and each by one worker: what changes meanwhile is done again afterwards', async () => {
  const stop = new AbortController()
  const finish: (() => void)[] = []
  const log: string[] = []
  const started: (() => void)[] = []
  const work = pendingWork(
    async (key) => {
      log.push(`begin ${key}`)
      started.shift()?.()
      await new Promise<void>((resolve) => finish.push(resolve))
      log.push(`end ${key}`)
      if (log.length === 8) stop.abort()
    },
    (key) => assert.fail(key),
    { mostAtOnce: 2 },
  )
  const begun = (): Promise<void> => new Promise((resolve) => started.push(resolve))
  for (const key of ['a', 'b', 'c']) work.add(key)
  const ended = work.run(stop.signal)
  work.add('a')
  assert.deepEqual(log, ['begin a', 'begin b'])
  const third = begun()
  finish.shift()?.()
  await third
  assert.deepEqual(log, ['begin a', 'begin b', 'end a', 'begin c'], 'what came first is done before what came again')
  const fourth = begun()
  finish.shift()?.()
  await fourth
  assert.deepEqual(log.slice(4), ['end b', 'begin a'])
  for (const one of finish) one()
  await ended
  assert.equal(log.length, 8)
})
