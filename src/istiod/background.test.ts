import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, test } from 'node:test'
import { eventually } from '../../test/support/eventually.ts'
import { logLines } from '../../test/support/log-lines.ts'
import { running, untilAborted } from './background.ts'

/** Waits for its end, and then takes a moment to sweep up. */
async function sweeping(signal: AbortSignal, done: string[]): Promise<void> {
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
  await new Promise((resolve) => setImmediate(resolve))
  done.push('swept up')
  signal.throwIfAborted()
}

describe('work in the background', () => {
  test('goes on until it is ended, which waits for it, and is no error then', async () => {
    const { logging, lines } = logLines()
    const done: string[] = []
    const process = new AbortController()
    const end = running((signal) => sweeping(signal, done), process.signal, logging.scope('test'))
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(done, [])
    await end()
    assert.deepEqual(done, ['swept up'])
    assert.deepEqual(lines, [])
  })

  test('ends with the process', async () => {
    const { logging, lines } = logLines()
    const done: string[] = []
    const process = new AbortController()
    const end = running((signal) => sweeping(signal, done), process.signal, logging.scope('test'))
    process.abort()
    await end()
    assert.deepEqual(done, ['swept up'])
    assert.deepEqual(lines, [])
  })

  test('that fails says so, ends what is left of it, and is started again after a pause', async () => {
    const { logging, until, lines } = logLines()
    const attempts: AbortSignal[] = []
    const end = running(
      async (signal) => {
        attempts.push(signal)
        if (attempts.length < 3) throw new Error(`out of paper ${attempts.length}`)
        await sweeping(signal, [])
      },
      new AbortController().signal,
      logging.scope('test'),
      1,
    )
    assert.match(await until(/out of paper 2/), /error.*test.*background work failed/)
    await eventually(() => attempts.length === 3, 'the third attempt')
    assert.deepEqual(
      attempts.map(({ aborted }) => aborted),
      [true, true, false],
    )
    await end()
    assert.equal(lines.length, 2)
    assert.equal(attempts.length, 3)
  })

  test('is ended within the pause, too', async () => {
    const { logging, until, lines } = logLines()
    const fail = async (): Promise<void> => Promise.reject(new Error('out of paper'))
    const end = running(fail, new AbortController().signal, logging.scope('test'), 3_600_000)
    await until(/background work failed/)
    await end()
    assert.equal(lines.length, 1)
  })
})

describe('waiting until a signal', () => {
  const reason = new Error('stopped')

  test('gives what the work gives, and leaves no listener', async () => {
    const { signal } = new AbortController()
    assert.equal(await untilAborted(Promise.resolve(7), signal), 7)
    await assert.rejects(untilAborted(Promise.reject(new Error('no')), signal), { message: 'no' })
    assert.deepEqual(getEventListeners(signal, 'abort'), [])
  })

  test('ends with the reason of the signal, whether it comes meanwhile or came before', async () => {
    const stop = new AbortController()
    const never = new Promise<never>(() => {})
    const waiting = untilAborted(never, stop.signal)
    stop.abort(reason)
    await assert.rejects(waiting, reason)
    await assert.rejects(untilAborted(never, stop.signal), reason)
  })
})
