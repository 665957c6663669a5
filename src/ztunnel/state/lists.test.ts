import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEndpointList } from './endpoint-list.ts'
import { createLists } from './lists.ts'
import { createRecent } from './recent.ts'

test('what was used lately is kept, what was not goes', () => {
  const recent = createRecent<number, string>(100)
  for (let key = 0; key < 10_000; key += 1) {
    recent.set(key, `${key}`)
    assert.equal(recent.get(0), '0')
    assert.equal(recent.get(Math.max(0, key - 40)), `${Math.max(0, key - 40)}`)
  }
  const kept = Array.from({ length: 10_000 }, (_, key) => recent.get(key)).filter((one) => one !== undefined)
  assert.ok(kept.length <= 200, `${kept.length}`)
})

test('a list is made anew when its version changes, from the one before', () => {
  const lists = createLists<{ size: number; from: number | undefined; version: number }>(100)
  const make = (version: number) => (before: { version: number } | undefined) => ({
    size: 1,
    from: before?.version,
    version,
  })
  const first = lists.get('a', 1, make(1))
  assert.equal(first.from, undefined)
  assert.equal(lists.get('a', 1, make(9)), first)
  assert.equal(lists.get('a', 2, make(2)).from, 1)
})

test('of many lists those used for longest not go, and one that is too long for all stays while it is used', () => {
  const lists = createLists<{ size: number; name: string }>(100)
  let made = 0
  const ask = (name: string, size: number) => {
    const list = lists.get(name, 1, () => {
      made += 1
      return { size, name }
    })
    assert.equal(list.name, name)
  }
  ask('long', 5000)
  ask('long', 5000)
  assert.equal(made, 1)
  for (let round = 0; round < 10; round += 1) for (const name of ['a', 'b', 'c']) ask(name, 30)
  assert.equal(made, 4)
  ask('d', 30)
  ask('b', 30)
  assert.equal(made, 5)
  ask('a', 30)
  assert.equal(made, 6)
})

test('what was worked out from endpoints is kept for one service object', () => {
  const list = createEndpointList([])
  const [service, changed] = [{}, {}]
  const one = list.remember(service, 'key', () => ({}))
  assert.equal(
    list.remember(service, 'key', () => ({})),
    one,
  )
  assert.notEqual(
    list.remember(service, 'other', () => ({})),
    one,
  )
  assert.notEqual(
    list.remember(changed, 'key', () => ({})),
    one,
  )
})
