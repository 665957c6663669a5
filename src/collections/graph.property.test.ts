// Random graphs under random changes: the incremental result is the result computed from nothing, and exactly the runs
// whose source value or recorded answers changed are computed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { computeFromNothing, Incremental, inputs, keys, someStages, someWaves } from './random-graphs.ts'

test('any graph under any changes: the result is that from nothing, and no run is made in vain', () => {
  fc.assert(
    fc.property(someStages, someWaves, (stages, waves) => {
      const incremental = new Incremental(stages)
      const given = Array.from({ length: inputs }, () => new Map<string, number>())
      let before = computeFromNothing(stages, given).traces
      for (const changes of waves) {
        incremental.runs.clear()
        const heard = incremental.collections.map(() => new Map<string, number>())
        const stops = incremental.collections.map((collection, at) =>
          collection.subscribe((batch) => {
            for (const change of batch) {
              if (change.kind === 'removed') heard[at]?.delete(change.key)
              else heard[at]?.set(change.key, change.new)
              if (change.kind === 'updated') assert.notDeepEqual(change.old, change.new)
            }
          }),
        )
        incremental.apply(changes)
        for (const stop of stops) stop()
        for (const { input, key, value } of changes) {
          if (value === undefined) given[input]?.delete(key)
          else given[input]?.set(key, value)
        }
        const { contents, traces } = computeFromNothing(stages, given)
        const sorted = (content: Iterable<readonly [string, number]>) =>
          [...content].sort(([a], [b]) => (a < b ? -1 : 1))
        for (const [at, collection] of incremental.collections.entries()) {
          assert.deepEqual(sorted(collection.entries()), sorted(contents[at] ?? []), `content of ${collection.name}`)
          assert.deepEqual(sorted(heard[at] ?? []), sorted(contents[at] ?? []), `changes of ${collection.name}`)
        }
        for (const { demand, reads } of incremental.demands) {
          const wanted = new Set([...(reads?.entries() ?? [])].map(([, value]) => keys[value % keys.length]))
          for (const [key] of demand.entries())
            assert.ok(wanted.has(key), `${demand.name} keeps ${key}, which nobody reads`)
        }
        const due = [...traces].filter(([run, trace]) => before.get(run) !== trace).map(([run]) => run)
        assert.deepEqual([...incremental.runs].sort(), due.sort())
        before = traces
      }
    }),
    { numRuns: 400 },
  )
})
