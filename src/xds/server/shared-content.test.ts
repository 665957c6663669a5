import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { EncodedResource, ResourceChange } from '../types.ts'
import { sharedListOf, sharedPushOf } from './shared-content.ts'
import { clearPending, createWatch, hasPending, noteChanges, takePending } from './watch.ts'

const resource = (name: string, size = 1): EncodedResource => ({
  name,
  aliases: [],
  version: `v-${name}`,
  body: new Uint8Array(size),
})
const added = (name: string, size?: number): ResourceChange => ({
  name,
  new: resource(name, size),
})
const removed = (name: string): ResourceChange => ({ name, old: resource(name) })

function source(...names: string[]) {
  let listed = 0
  return {
    typeUrl: 't',
    synced: true,
    list: () => {
      listed += 1
      return names.map((name) => resource(name))
    },
    get: (name: string) => (names.includes(name) ? resource(name) : undefined),
    subscribe: () => () => {},
    listed: () => listed,
  }
}

describe('a wave that all get alike', () => {
  test('is encoded once, in messages of bounded size, removals in the last', () => {
    const changes = [added('a', 3_000_000), added('b', 3_000_000), removed('d'), added('c'), removed('c2')]
    const push = sharedPushOf('t', changes)
    assert.equal(sharedPushOf('t', changes), push)
    const [first, second, ...rest] = push.parts('all')
    assert.deepEqual([first?.resources.length, first?.removed, rest.length], [2, [], 0])
    assert.deepEqual([second?.resources.map(({ name }) => name), second?.removed], [['c'], ['c2', 'd']])
    assert.equal(first?.encoded?.(), first?.encoded?.())
  })

  test('is taken part by part, and turns into names when another wave comes before its end', () => {
    const watch = createWatch({ source: source('a', 'b'), isWildcard: true, removals: 'last' }, true, [])
    noteChanges(watch, [added('a'), removed('x')], '', true)
    assert.equal(watch.pending.size, 0)
    assert.deepEqual(
      takePending(watch, 'changes')?.resources.map(({ name }) => name),
      ['a'],
    )
    assert.equal(hasPending(watch, 'changes'), false)
    assert.deepEqual(takePending(watch, 'removals')?.removed, ['x'])
    assert.equal(hasPending(watch, 'removals'), false)
    assert.equal(watch.wave, undefined)
    noteChanges(watch, [added('a')], '', true)
    noteChanges(watch, [added('b'), removed('x')], '', true)
    assert.deepEqual([...watch.pending.keys()], ['a', 'b', 'x'])
    assert.deepEqual(
      takePending(watch, 'changes')?.resources.map(({ name }) => name),
      ['a', 'b'],
    )
    clearPending(watch)
    assert.equal(hasPending(watch, 'all'), false)
  })

  test('is sent as it was, also late: what comes after it is another wave', () => {
    const changing = source('a')
    const watch = createWatch({ source: changing, isWildcard: true }, true, [])
    const change = added('a', 7)
    for (const mayShare of [true, false]) {
      noteChanges(watch, [change], '', mayShare)
      assert.equal(takePending(watch, 'all')?.resources[0], change.new)
    }
  })

  test('is not for watches of single names', () => {
    const watch = createWatch({ source: source('a'), isWildcard: true }, false, ['a'])
    noteChanges(watch, [added('a'), added('b')], '', true)
    assert.deepEqual([watch.wave, [...watch.pending.keys()]], [undefined, ['a']])
  })
})

test('a list is put together once for clients that come together, and anew after a change', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const from = source('a', 'b')
  const list = sharedListOf(from)
  assert.equal(list.get(), list.get())
  assert.equal(from.listed(), 1)
  list.forget()
  list.get()
  assert.equal(from.listed(), 2)
  t.mock.timers.tick(5_001)
  list.get()
  assert.equal(from.listed(), 3)
  list.forget()
})
