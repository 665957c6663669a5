// What the dataflow owes its clients, for any clients and any changes.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createMemorySource, type MemoryResource, type MemorySource } from '../testing.ts'
import type { Connection } from './connection.ts'
import { answered, connectClient, type TestClient } from './testing.ts'

const typeUrl = 'type.googleapis.com/istio.workload.Address'
const names = ['w0', 'w1', 'w2', 'w3', 'w4', 'w5']
const nodes = ['n0', 'n1']
const services = ['s0', 's1']

const resource: fc.Arbitrary<MemoryResource> = fc.record({
  name: fc.constantFrom(...names),
  text: fc.string({ minLength: 1, maxLength: 4 }),
  services: fc.subarray(services),
  node: fc.constantFrom(...nodes),
})
const waves = fc.array(
  fc.record({
    set: fc.uniqueArray(resource, { selector: ({ name }) => name, maxLength: 4 }),
    remove: fc.subarray(names, { maxLength: 2 }),
  }),
  { minLength: 1, maxLength: 6 },
)
const clients = fc.array(
  fc.record({ asked: fc.subarray([...names.slice(0, 3), ...services]), node: fc.constantFrom('', ...nodes) }),
  { minLength: 1, maxLength: 4 },
)

type Wave = { readonly set: readonly MemoryResource[]; readonly remove: readonly string[] }

/** Applies a wave to the source and gives it, as the server does, to the connections. */
function apply(source: MemorySource, wave: Wave, connections: readonly Connection[]): readonly string[] {
  const changed: string[] = []
  const end = source.subscribe((changes) => {
    const real = changes.filter(({ old, new: next }) => old !== undefined || next !== undefined)
    changed.push(...real.map(({ name }) => name))
    for (const connection of connections) connection.push(new Map([[typeUrl, real]]))
  })
  source.change({ set: wave.set, remove: wave.remove.filter((name) => !wave.set.some((one) => one.name === name)) })
  end()
  return changed
}

function applyBoth(
  source: MemorySource,
  model: Map<string, MemoryResource>,
  wave: Wave,
  connections: readonly Connection[],
): readonly string[] {
  const changed = apply(source, wave, connections)
  for (const name of wave.remove) if (!wave.set.some((one) => one.name === name)) model.delete(name)
  for (const one of wave.set) model.set(one.name, one)
  return changed
}

describe('pushes', { timeout: 60_000 }, () => {
  test('bring each client what changed of what it watches, and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(clients, waves, waves, async (asked, first, then) => {
        const source = createMemorySource(typeUrl, { onDemand: true })
        const model = new Map<string, MemoryResource>()
        for (const wave of first) applyBoth(source, model, wave, [])
        const all = asked.map((one) => connectClient([source], one.asked, one.node))
        await answered(all)
        for (const one of all) one.arrive()
        for (const wave of then) {
          const before = new Map(model)
          const sent = all.map(({ messages }) => messages.length)
          const watched = all.map(({ connection }) => new Set(connection.watches.get(typeUrl)?.names))
          const changed = applyBoth(
            source,
            model,
            wave,
            all.map(({ connection }) => connection),
          )
          for (const [index, one] of all.entries()) {
            one.arrive()
            const { asked: names = [], node = '' } = asked[index] ?? {}
            const concerns = (name: string): boolean => {
              if (names.length === 0) return true
              const both = [before.get(name), model.get(name)].filter((side) => side !== undefined)
              const keys = [name, ...both.flatMap((side) => side.services ?? [])]
              return keys.some((key) => watched[index]?.has(key)) || both.some((side) => side.node === node)
            }
            const since = one.messages.slice(sent[index])
            // One message for all of it, and none when nothing concerns the client.
            assert.equal(since.length, changed.some(concerns) ? 1 : 0)
            const got = since.flatMap((message) => [...message.names, ...message.removed])
            assert.deepEqual(got.sort(), changed.filter(concerns).sort())
          }
        }
        for (const one of all) {
          assert.equal(one.overlaps(), 0)
          one.connection.close()
        }
      }),
      { numRuns: 60 },
    )
  })

  test('make a wildcard client hold what the source holds, however slowly it reads', async () => {
    await fc.assert(
      fc.asyncProperty(waves, fc.array(fc.boolean(), { maxLength: 6 }), async (changes, reads) => {
        const source = createMemorySource(typeUrl, { onDemand: true })
        const [slow, fast] = [connectClient([source]), connectClient([source])]
        await answered([slow, fast])
        fast.arrive()
        for (const [index, wave] of changes.entries()) {
          apply(source, wave, [slow.connection, fast.connection])
          // The fast one has everything although the slow one may not have read since the start.
          fast.arrive()
          assert.deepEqual(held(fast), [...source.list()].map(({ name }) => name).sort())
          if (reads[index] === true) slow.arrive()
        }
        slow.arrive()
        assert.deepEqual(held(slow), held(fast))
        assert.equal(slow.overlaps() + fast.overlaps(), 0)
        assert.ok(slow.messages.length <= fast.messages.length, 'what waited was sent together')
        slow.connection.close()
        fast.connection.close()
      }),
      { numRuns: 60 },
    )
  })
})

function held({ messages }: TestClient): readonly string[] {
  const now = new Set<string>()
  for (const message of messages) {
    for (const name of message.names) now.add(name)
    for (const name of message.removed) now.delete(name)
  }
  return [...now].sort()
}
