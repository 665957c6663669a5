import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hashOf } from './block.ts'
import {
  createSharedTables,
  openSharedTables,
  type SharedTables,
  type SharedTablesOptions,
  type TableView,
} from './index.ts'

const megabyte = 1024 * 1024
const tablesOf = (options: Partial<Omit<SharedTablesOptions, 'tables'>> = {}): SharedTables =>
  createSharedTables({ tables: 2, readers: 0, limitBytes: 64 * megabyte, ...options })

const bytes = (text: string): Uint8Array => Buffer.from(text)
const textOf = (view: TableView, leaf: number): string | undefined =>
  leaf === 0
    ? undefined
    : view.bytes.toString('utf8', view.valueStart(leaf), view.valueStart(leaf) + view.valueLength(leaf))

type Model = Map<string, string>
type Maps = Map<string, Map<string, number>>

function assertSame(view: TableView, values: Model, maps: Maps): void {
  const found = view.leaves(0).map((leaf) => [view.keyOf(leaf), textOf(view, leaf)] as const)
  assert.deepEqual(new Map(found), values)
  assert.equal(found.length, values.size)
  for (const [key, value] of values) assert.equal(textOf(view, view.find(0, key)), value)
  assert.deepEqual(new Set(view.leaves(1).map((leaf) => view.keyOf(leaf))), new Set(maps.keys()))
  for (const [key, inner] of maps) {
    const map = view.find(1, key)
    assert.equal(view.sizeOf(map), inner.size)
    assert.deepEqual(new Map(view.leavesIn(map).map((leaf) => [view.keyOf(leaf), view.wordOf(leaf, 0)])), inner)
    for (const [innerKey, word] of inner) assert.equal(view.wordOf(view.findIn(map, innerKey), 0), word)
  }
}

/** Few keys, so that they meet; some long, some of wide characters, some whose hash starts alike. */
const key = fc.oneof(
  fc.constantFrom('', 'a', 'b', 'aa', 'é', 'ключ', '鍵', 'x'.repeat(5000), 'ü'.repeat(3000), '鍵'.repeat(900)),
  fc.integer({ min: 0, max: 60 }).map(String),
)
const value = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.integer({ min: 0, max: 20_000 }).map((length) => 'v'.repeat(length)),
)
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('put' as const), key, value }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), key }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('putIn' as const), key, inner: key, word: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('removeFrom' as const), key, inner: key }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('removeMap' as const), key }) },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

const push = fc.record({
  steps: fc.array(step, { maxLength: 40 }),
  fails: fc.boolean(),
  /** Which readers move on afterwards. */
  moves: fc.tuple(fc.boolean(), fc.boolean()),
})

class Refused extends Error {}

function apply(tables: SharedTables, steps: readonly Step[], fails: boolean, values: Model, maps: Maps) {
  return tables.commit((transaction) => {
    for (const one of steps) {
      switch (one.kind) {
        case 'put':
          values.set(one.key, one.value)
          transaction.put(0, one.key, bytes(one.value))
          break
        case 'remove':
          assert.equal(transaction.remove(0, one.key), values.delete(one.key))
          break
        case 'putIn': {
          const inner = maps.get(one.key) ?? new Map<string, number>()
          maps.set(one.key, inner.set(one.inner, one.word))
          transaction.putIn(1, one.key, one.inner, [one.word])
          break
        }
        case 'removeFrom': {
          const was = maps.get(one.key)?.delete(one.inner) ?? false
          if (maps.get(one.key)?.size === 0) maps.delete(one.key)
          assert.equal(transaction.removeFrom(1, one.key, one.inner), was)
          break
        }
        case 'removeMap':
          assert.equal(transaction.remove(1, one.key), maps.delete(one.key))
      }
    }
    assertSame(transaction, values, maps)
    if (fails) throw new Refused()
  })
}

/** All entries of all maps, each as that which names its content. */
const entriesOf = (view: TableView): string[] =>
  view.leaves(1).flatMap((map) => view.leavesIn(map).map((leaf) => `${leaf}@${view.generationOf(leaf)}`))

function assertNewSince(view: TableView, generation: number, before: ReadonlySet<string>): void {
  const since = view.leaves(1).flatMap((map) => view.leavesSince(map, generation))
  const expected = entriesOf(view).filter((entry) => !before.has(entry))
  assert.deepEqual(since.map((leaf) => `${leaf}@${view.generationOf(leaf)}`).sort(), expected.sort())
}

const copyOf = (maps: Maps): Maps => new Map([...maps].map(([key, inner]) => [key, new Map(inner)]))

/** Around where generations need another bit of a word, or a second word. */
const firstGeneration = fc.constantFrom(1, 2 ** 31 - 10, 2 ** 32 - 10, 2 ** 52)

test('tables are what maps are, in each generation that a reader holds, and in the end nothing is left', () => {
  fc.assert(
    fc.property(fc.array(push, { maxLength: 25 }), firstGeneration, (pushes, first) => {
      const tables = tablesOf({ readers: 2, firstGeneration: first })
      const empty = tables.usage().usedBytes
      const readers = [0, 1].map((reader) => ({
        reader: openSharedTables(tables.handle, reader),
        values: new Map() as Model,
        maps: new Map() as Maps,
      }))
      let values: Model = new Map()
      let maps: Maps = new Map()
      const seen = new Map<number, ReadonlySet<string>>()
      for (const { steps, fails, moves } of pushes) {
        const next = { values: new Map(values), maps: copyOf(maps) }
        if (fails) {
          assert.throws(() => apply(tables, steps, fails, next.values, next.maps), Refused)
        } else {
          const standpoint = apply(tables, steps, fails, next.values, next.maps)
          values = next.values
          maps = next.maps
          for (const [index, one] of readers.entries()) {
            if (!moves[index]) continue
            one.reader.advance(standpoint)
            one.values = values
            one.maps = maps
          }
        }
        assertSame(tables.view, values, maps)
        for (const [generation, before] of seen) assertNewSince(tables.view, generation, before)
        seen.set(tables.view.generation, new Set(entriesOf(tables.view)))
        for (const one of readers) assertSame(one.reader, one.values, one.maps)
      }
      const emptied = tables.commit((transaction) => {
        for (const key of values.keys()) assert.ok(transaction.remove(0, key))
        for (const key of maps.keys()) assert.ok(transaction.remove(1, key))
      })
      for (const { reader } of readers) reader.advance(emptied)
      const { usedBytes, waitingBlocks } = tables.usage()
      assert.deepEqual({ usedBytes, waitingBlocks }, { usedBytes: empty, waitingBlocks: 0 })
    }),
    { numRuns: 150 },
  )
})

/** Texts whose hashes are equal: their beginnings lead to states that differ only in what the last unit can even out. */
function colliding(seed: number): readonly string[] {
  const step = (state: number, unit: number): number => {
    const mixed = Math.imul(state ^ unit, 0x5b_d1_e9_95)
    return mixed ^ (mixed >>> 15)
  }
  const byUpperHalf = new Map<number, { text: string; state: number }[]>()
  for (let index = 0; index < 400_000; index += 1) {
    const text = String.fromCharCode(256 + (index % 1000), 256 + Math.floor(index / 1000))
    const state = step(step(seed ^ 3, text.charCodeAt(0)), text.charCodeAt(1))
    const group = byUpperHalf.get(state >>> 16) ?? []
    group.push({ text, state })
    byUpperHalf.set(state >>> 16, group)
  }
  const [largest = []] = [...byUpperHalf.values()].sort((a, b) => b.length - a.length)
  const target = (largest[0]?.state ?? 0) & 0xffff
  return largest.map(({ text, state }) => text + String.fromCharCode((state & 0xffff) ^ target))
}

test('keys with equal hashes are kept apart', () => {
  const tables = tablesOf({ readers: 1 })
  const empty = tables.usage().usedBytes
  const seed = new Int32Array(tables.handle.buffer)[4] ?? 0
  const alike = colliding(seed)
  assert.ok(alike.length >= 4)
  assert.equal(new Set(alike.map((text) => hashOf(text, seed))).size, 1)
  const reader = openSharedTables(tables.handle, 0)
  const others = Array.from({ length: 500 }, (_, index) => `other-${index}`)
  const keys = [...alike, ...others]
  const values: Model = new Map()
  const all = keys.flatMap((key) => [key, key])
  for (const [index, key] of all.entries()) {
    values.set(key, `${index}`)
    reader.advance(tables.commit((transaction) => transaction.put(0, key, bytes(`${index}`))))
  }
  assertSame(tables.view, values, new Map())
  for (const key of keys) {
    values.delete(key)
    reader.advance(tables.commit((transaction) => assert.ok(transaction.remove(0, key))))
    assert.equal(reader.find(0, key), 0)
    if (values.size % 50 === 0 || values.size > others.length - 5) assertSame(reader, values, new Map())
  }
  assert.equal(tables.usage().usedBytes, empty)
})

test('the memory grows, readers see what is beyond their first views, and what is freed is used again', () => {
  const tables = tablesOf({ readers: 1 })
  const reader = openSharedTables(tables.handle, 0)
  const large = Buffer.alloc(megabyte, 'x')
  const turn = () => {
    reader.advance(
      tables.commit((transaction) => {
        for (let index = 0; index < 10; index += 1) transaction.put(0, `big-${index}`, large)
      }),
    )
    const leaf = reader.find(0, 'big-9')
    const start = reader.valueStart(leaf)
    assert.ok(reader.bytes.subarray(start, start + reader.valueLength(leaf)).equals(large))
  }
  turn()
  turn()
  const { reservedBytes } = tables.usage()
  for (let round = 0; round < 30; round += 1) turn()
  assert.ok(tables.usage().reservedBytes <= reservedBytes * 1.5, 'replaced values are used again')
})

test('a push beyond the limit is refused with a typed error, the state before stays, and smaller ones go on', () => {
  const tables = tablesOf({ readers: 1, limitBytes: 4 * megabyte })
  const reader = openSharedTables(tables.handle, 0)
  reader.advance(tables.commit((transaction) => transaction.put(0, 'kept', bytes('here'))))
  const before = tables.usage().usedBytes
  for (let round = 0; round < 5; round += 1) {
    assert.throws(
      () =>
        tables.commit((transaction) => {
          transaction.put(0, 'kept', bytes('gone'))
          for (let index = 0; ; index += 1) transaction.putIn(1, `${index % 100}`, `key-${index}`, [index])
        }),
      { code: 'OUT_OF_MEMORY' },
    )
    assert.equal(tables.usage().usedBytes, before)
    for (const view of [tables.view, reader]) assertSame(view, new Map([['kept', 'here']]), new Map())
  }
  const turns = 200
  for (let turn = 0; turn < turns; turn += 1) {
    reader.advance(tables.commit((transaction) => transaction.put(0, 'kept', Buffer.alloc(100_000, 'y'))))
  }
  assert.equal(textOf(reader, reader.find(0, 'kept'))?.length, 100_000)
})

test('a reader that never started holds nothing; one that stands still holds what it sees until it moves', () => {
  const tables = tablesOf({ readers: 2 })
  const write = (text: string) => tables.commit((transaction) => transaction.put(0, 'k', bytes(text)))
  write('first')
  const still = openSharedTables(tables.handle, 0)
  let last = tables.commit(() => {})
  for (let turn = 0; turn < 100; turn += 1) last = write(`turn ${turn}`)
  assert.equal(textOf(still, still.find(0, 'k')), 'first')
  assert.ok(tables.usage().waitingBlocks > 100)
  still.advance(last)
  assert.equal(tables.usage().waitingBlocks, 0)
  assert.equal(textOf(still, still.find(0, 'k')), 'turn 99')
})

test('as many readers have a place as there may be workers', () => {
  const tables = tablesOf({ readers: 512 })
  const last = openSharedTables(tables.handle, 511)
  last.advance(tables.commit((transaction) => transaction.put(0, 'k', bytes('v'))))
  assert.equal(textOf(last, last.find(0, 'k')), 'v')
  assert.equal(tables.usage().waitingBlocks, 0)
})

test('a memory of something else, and a reader without a place, are refused', () => {
  const { handle } = tablesOf({ readers: 1 })
  for (const reader of [-1, 1, 0.5]) assert.throws(() => openSharedTables(handle, reader), { code: 'INVALID_MEMORY' })
  assert.throws(() => openSharedTables({ buffer: new SharedArrayBuffer(8192) }, 0), { code: 'INVALID_MEMORY' })
  assert.throws(() => openSharedTables(handle, 0).advance({ generation: 99, root: 0 }), { code: 'INVALID_MEMORY' })
})
