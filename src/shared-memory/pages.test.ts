import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createPages } from './pages.ts'

test('runs never overlap, and when all are given back the next begins where the first did', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('take' as const), count: fc.integer({ min: 1, max: 9 }) }),
    fc.record({ kind: fc.constant('give' as const), index: fc.nat() }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let end = 0
      const pages = createPages(1, (needed) => {
        end = Math.max(end, needed)
      })
      const taken: { first: number; count: number }[] = []
      for (const one of steps) {
        if (one.kind === 'take') {
          const first = pages.take(one.count)
          assert.ok(first >= 1 && first + one.count <= end)
          for (const other of taken) assert.ok(first + one.count <= other.first || other.first + other.count <= first)
          taken.push({ first, count: one.count })
          continue
        }
        const [run] = taken.splice(one.index % Math.max(1, taken.length), 1)
        if (run === undefined) continue
        pages.giveBack(run.first, run.count)
        pages.settle()
      }
      for (const { first, count } of taken) pages.giveBack(first, count)
      pages.settle()
      assert.equal(pages.take(1000), 1)
    }),
  )
})

test('what is given back is not others before it is settled', () => {
  const pages = createPages(1, () => {})
  const first = pages.take(4)
  pages.giveBack(first, 4)
  assert.notEqual(pages.take(4), first)
  pages.settle()
  assert.equal(pages.take(4), first)
})

test('when there is no room nothing has changed', () => {
  let room = 10
  const pages = createPages(1, (needed) => {
    if (needed > room) throw new RangeError('no room')
  })
  assert.throws(() => pages.take(100), RangeError)
  room = 1000
  assert.equal(pages.take(100), 1)
})
