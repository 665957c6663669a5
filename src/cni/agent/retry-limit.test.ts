import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRetryLimit } from './retry-limit.ts'

test('a burst goes at once, what follows at the steady rate, and quiet time fills the burst again', () => {
  let now = 0
  const takeTurn = createRetryLimit({ perSecond: 10, burst: 3, now: () => now })
  assert.deepEqual([takeTurn(), takeTurn(), takeTurn(), takeTurn(), takeTurn()], [0, 0, 0, 100, 200])
  now = 10_000
  assert.deepEqual([takeTurn(), takeTurn(), takeTurn(), takeTurn()], [0, 0, 0, 100])
})
