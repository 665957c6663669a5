import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createFanOut } from './fan-out.ts'

test('waves go out in their order, in as many turns as it takes', async () => {
  const told: string[] = []
  const done = new EventTarget()
  const fanOut = createFanOut(
    () => ['a', 'b'],
    (receiver: string, wave: number) => {
      told.push(`${receiver}${wave}`)
      if (told.length === 6) done.dispatchEvent(new Event('all'))
    },
    0,
  )
  const all = once(done, 'all')
  for (const wave of [1, 2, 3]) fanOut.add(wave)
  assert.deepEqual(told, ['a1'])
  await all
  assert.deepEqual(told, ['a1', 'b1', 'a2', 'b2', 'a3', 'b3'])
})

test('nothing goes out after the end', async () => {
  const told: string[] = []
  const fanOut = createFanOut(
    () => ['a', 'b'],
    (receiver: string) => told.push(receiver),
    0,
  )
  fanOut.add(1)
  fanOut.close()
  await nextTurn()
  assert.deepEqual(told, ['a'])
})
