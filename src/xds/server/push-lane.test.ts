import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import fc from 'fast-check'
import { createPushLane, type Wave } from './push-lane.ts'

const change = (name: string, keys: string[] = [name]) => ({ name, reach: () => ({ keys, nodes: [] }) })
const type = 'a.B'

describe('a push lane', () => {
  function withClock(
    run: (tick: (ms: number) => void, waves: Wave[], add: (name: string, keys?: string[]) => void) => void,
    isBusy?: () => boolean,
  ): void {
    mock.timers.enable({ apis: ['setTimeout'] })
    let now = 0
    const clock = mock.method(performance, 'now', () => now)
    const waves: Wave[] = []
    const lane = createPushLane({ afterMs: 10, maxMs: 100 }, (wave) => waves.push(wave), isBusy)
    try {
      run(
        (ms) => {
          for (let step = 0; step < ms; step += 1) {
            now += 1
            mock.timers.tick(1)
          }
        },
        waves,
        (name, keys) => lane.add(type, [change(name, keys)]),
      )
    } finally {
      lane.close()
      clock.mock.restore()
      mock.timers.reset()
    }
  }

  test('makes one wave of changes that follow each other quickly', () =>
    withClock((tick, waves, add) => {
      add('a')
      tick(5)
      add('b')
      tick(9)
      assert.equal(waves.length, 0)
      tick(2)
      assert.deepEqual(
        waves.map((wave) => wave.get(type)?.map(({ name }) => name)),
        [['a', 'b']],
      )
    }))

  test('does not let a change wait longer than the maximum', () =>
    withClock((tick, waves, add) => {
      for (let i = 0; i < 30; i += 1) {
        add(`n${i}`)
        tick(5)
      }
      assert.equal(waves.length, 1)
      assert.ok((waves[0]?.get(type)?.length ?? 0) >= 19)
    }))

  test('waits and grows while the wave before is going out', () => {
    let isBusy = true
    withClock(
      (tick, waves, add) => {
        add('a')
        tick(150)
        add('b')
        tick(20)
        assert.equal(waves.length, 0)
        isBusy = false
        tick(6)
        assert.deepEqual(
          waves.map((wave) => wave.get(type)?.map(({ name }) => name)),
          [['a', 'b']],
        )
      },
      () => isBusy,
    )
  })

  test('keeps no change longer than the maximum, whatever comes; what follows quickly on another goes with it', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 60 }), (gaps) =>
        withClock((tick, waves, add) => {
          const at: number[] = []
          const wentAt = new Map<string, number>()
          let now = 0
          const pass = (ms: number): void => {
            for (let step = 0; step < ms; step += 1) {
              tick(1)
              now += 1
              for (const wave of waves.splice(0)) {
                for (const { name } of wave.get(type) ?? []) {
                  assert.ok(!wentAt.has(name), 'goes out once')
                  wentAt.set(name, now)
                }
              }
            }
          }
          for (const [index, gap] of gaps.entries()) {
            pass(gap)
            at.push(now)
            add(`n${index}`)
          }
          pass(120)
          for (const [index, came] of at.entries()) {
            const waited = (wentAt.get(`n${index}`) ?? Infinity) - came
            assert.ok(waited <= 102, `waited ${waited} ms`)
            const first = at.findIndex((_, other) => wentAt.get(`n${other}`) === wentAt.get(`n${index}`))
            const next = at[index + 1]
            if (next === undefined || next - came > 8 || next - (at[first] ?? 0) > 90) continue
            assert.equal(wentAt.get(`n${index + 1}`), wentAt.get(`n${index}`))
          }
        }),
      ),
      { numRuns: 40 },
    )
  })

  test('merges the changes of one resource and the keys of both', () =>
    withClock((tick, waves, add) => {
      add('a', ['a', '/10.0.0.1'])
      add('a', ['a', '/10.0.0.2'])
      tick(11)
      assert.deepEqual(waves[0]?.get(type)?.[0]?.reach?.().keys, ['a', '/10.0.0.1', '/10.0.0.2'])
    }))

  test('tells nothing after it was closed', () => {
    const waves: Wave[] = []
    const lane = createPushLane({ afterMs: 0, maxMs: 0 }, (wave) => waves.push(wave))
    lane.add(type, [change('a')])
    lane.close()
    assert.deepEqual(waves, [])
  })
})
