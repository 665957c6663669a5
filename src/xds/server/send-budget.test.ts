import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import { createSendBudget } from './send-budget.ts'

describe('a send budget', () => {
  test('lets messages wait while too many bytes are on their way, in their order', () => {
    const budget = createSendBudget(100)
    const started: string[] = []
    const sent = new Map<string, () => void>()
    const enter = (name: string, size: number): void =>
      budget.enter((done) => {
        started.push(name)
        sent.set(name, done)
        return size
      })
    enter('a', 60)
    enter('b', 60)
    enter('c', 10)
    enter('d', 10)
    assert.deepEqual(started, ['a', 'b'])
    assert.equal(budget.inFlight, 120)
    sent.get('a')?.()
    assert.deepEqual(started, ['a', 'b', 'c', 'd'])
    for (const done of sent.values()) done()
    assert.equal(budget.inFlight, 0)
  })

  test('does not let a client that never reads hold back the others', () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    const budget = createSendBudget(10)
    let second = false
    budget.enter(() => 10)
    budget.enter(() => {
      second = true
      return 1
    })
    assert.equal(second, false)
    mock.timers.tick(2_001)
    assert.equal(second, true)
    mock.timers.reset()
  })

  test('counts nothing for a message that was gone at once', () => {
    const budget = createSendBudget(10)
    budget.enter((done) => {
      done()
      return 1_000
    })
    assert.equal(budget.inFlight, 0)
  })
})
