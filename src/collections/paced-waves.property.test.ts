// Waves that pause anywhere: who reads meanwhile sees one consistent state, and in the end nothing is lost.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Pace } from './index.ts'
import { type Change, computeFromNothing, Incremental, inputs, keys, someChange, someStages } from './random-graphs.ts'

type Step =
  | { readonly kind: 'change'; readonly changes: readonly Change[] }
  /** A transaction that throws. */
  | { readonly kind: 'abandon'; readonly changes: readonly Change[] }
  /** Goes on with the wave under way for so many steps. */
  | { readonly kind: 'compute'; readonly steps: number }
  | { readonly kind: 'subscribe' }
  | { readonly kind: 'acquire'; readonly at: number; readonly key: string }

const someChanges = fc.array(someChange, { minLength: 1, maxLength: 4 })
const someSteps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('change' as const), changes: someChanges }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('abandon' as const), changes: someChanges }) },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('compute' as const), steps: fc.nat(4) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('subscribe' as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('acquire' as const), at: fc.nat(9), key: fc.constantFrom(...keys) }),
    },
  ),
  { minLength: 1, maxLength: 25 },
)

/** Computes nothing by itself: only the steps it is given. */
function stepwise() {
  let left = 0
  let resume: (() => void) | undefined
  const pace: Pace = {
    shouldPause: () => {
      left -= 1
      return left < 0
    },
    later: (next) => {
      assert.equal(resume, undefined, 'one continuation is planned at a time')
      resume = next
    },
  }
  return {
    pace,
    compute(steps: number): void {
      left = steps
      const next = resume
      resume = undefined
      next?.()
      left = 0
    },
    get isWaiting() {
      return resume !== undefined
    },
  }
}

const sorted = (content: Iterable<readonly [string, number]>) => [...content].sort(([a], [b]) => (a < b ? -1 : 1))

class Subscriber {
  readonly held = new Map<string, Map<string, number>>()

  constructor({ collections }: Incremental) {
    for (const collection of collections) {
      const content = new Map<string, number>()
      this.held.set(collection.name, content)
      collection.subscribe((batch) => {
        for (const change of batch) {
          assert.equal(content.get(change.key), change.kind === 'added' ? undefined : change.old)
          if (change.kind === 'removed') content.delete(change.key)
          else content.set(change.key, change.new)
        }
      })
    }
  }
}

function checkConsistent(incremental: Incremental, stages: Parameters<typeof computeFromNothing>[0]): void {
  const given = incremental.collections.slice(0, inputs).map((input) => new Map(input.entries()))
  const { contents } = computeFromNothing(stages, given)
  for (const [at, collection] of incremental.collections.entries()) {
    const content = contents[at] ?? new Map<string, number>()
    assert.deepEqual(sorted(collection.entries()), sorted(content), `entries of ${collection.name}`)
    assert.equal(collection.size, content.size, `size of ${collection.name}`)
    for (const key of keys) assert.equal(collection.get(key), content.get(key), `${key} of ${collection.name}`)
  }
  for (const { collection, index } of incremental.indexes) {
    for (const remainder of [0, 1, 2]) {
      const expected = sorted(collection.entries()).filter(([, value]) => value % 3 === remainder)
      assert.deepEqual(
        index.get(String(remainder)),
        expected.map(([, value]) => value),
        `index ${index.name}`,
      )
    }
  }
}

test('while waves pause anywhere, readers and subscribers see only states that follow from the inputs they see', () => {
  fc.assert(
    fc.property(someStages, someSteps, (stages, steps) => {
      const pacer = stepwise()
      const incremental = new Incremental(stages, pacer.pace)
      const subscribers = [new Subscriber(incremental)]
      const wanted = Array.from({ length: inputs }, () => new Map<string, number>())
      for (const step of steps) {
        switch (step.kind) {
          case 'change':
            incremental.apply(step.changes)
            for (const { input, key, value } of step.changes) {
              if (value === undefined) wanted[input]?.delete(key)
              else wanted[input]?.set(key, value)
            }
            break
          case 'abandon':
            assert.throws(() =>
              incremental.graph.transaction(() => {
                incremental.apply(step.changes)
                throw new Error('abandoned')
              }),
            )
            break
          case 'compute':
            pacer.compute(step.steps)
            break
          case 'subscribe':
            subscribers.push(new Subscriber(incremental))
            break
          case 'acquire':
            incremental.demands[step.at % incremental.demands.length]?.demand.acquire(step.key).close()
        }
        checkConsistent(incremental, stages)
        for (const { held } of subscribers) {
          for (const collection of incremental.collections) {
            assert.deepEqual(sorted(held.get(collection.name) ?? []), sorted(collection.entries()), collection.name)
          }
        }
      }
      pacer.compute(100_000)
      assert.equal(pacer.isWaiting, false)
      for (const [at, content] of wanted.entries()) {
        assert.deepEqual(sorted(incremental.collections[at]?.entries() ?? []), sorted(content))
      }
      checkConsistent(incremental, stages)
    }),
    { numRuns: 600 },
  )
})

test('changes made while a wave has paused form one wave after it', async () => {
  const pacer = stepwise()
  const incremental = new Incremental([{ kind: 'get', source: 0, other: 0 }], pacer.pace)
  const waves: number[] = []
  incremental.collections.at(-1)?.subscribe((changes) => waves.push(changes.length))
  const set = (key: string, value: number) => incremental.apply([{ input: 0, key, value }])
  set('a', 1)
  set('b', 2)
  pacer.compute(2)
  set('c', 3)
  set('d', 4)
  set('c', 5)
  assert.deepEqual(waves, [])
  const settled = incremental.graph.whenSettled()
  pacer.compute(100)
  assert.deepEqual(waves, [2, 2])
  await settled
})
