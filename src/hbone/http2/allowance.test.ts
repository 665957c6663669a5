import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAllowance } from './allowance.ts'

test('a burst, then so many a second, never more than the burst', () => {
  let time = 0
  const allowance = createAllowance('things', { burst: 3, perSecond: 2 }, () => time)
  const taken = () => Array.from({ length: 10 }, () => allowance.take()).filter(Boolean).length
  assert.equal(taken(), 3)
  time += 1000
  assert.equal(taken(), 2)
  time += 60_000
  assert.equal(taken(), 3)
})
