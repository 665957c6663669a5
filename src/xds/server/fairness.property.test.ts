// A type that changes all the time, and a client that reads slowly, keep back nobody.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createMemorySource, type MemorySource } from '../testing.ts'
import type { ResourceChange } from '../types.ts'
import type { Connection } from './connection.ts'
import { answered, connectClient } from './testing.ts'

const types = ['a', 'b', 'c'].map((name) => `type.googleapis.com/test.${name.toUpperCase()}`)
const sourceOf = (typeUrl: string): MemorySource => createMemorySource(typeUrl)

/** Changes one resource and brings that to the connections, as a wave of its own. */
function change(source: MemorySource, name: string, text: string, ...connections: readonly Connection[]): void {
  const end = source.subscribe((changes: readonly ResourceChange[]) => {
    for (const connection of connections) connection.push(new Map([[source.typeUrl, changes]]))
  })
  source.change({ set: [{ name, text }] })
  end()
}

async function setUp() {
  const sources = types.map(sourceOf)
  const client = connectClient(sources)
  await answered([client], types.length)
  client.arrive()
  return { sources, client }
}

describe('a client', { timeout: 60_000 }, () => {
  test('gets a change of one type soon, while the other types change with every message', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(2), fc.integer({ min: 1, max: 12 }), async (quiet, before) => {
        const { sources, client } = await setUp()
        let count = 0
        const noise = (): void => {
          for (const [at, source] of sources.entries()) {
            count += 1
            if (at !== quiet) change(source, 'noise', `${count}`, client.connection)
          }
        }
        for (let round = 0; round < before; round += 1) {
          noise()
          client.arriveOne()
        }
        const from = client.messages.length
        const quietSource = sources[quiet]
        if (quietSource === undefined) assert.fail()
        change(quietSource, 'news', '1', client.connection)
        // What is under way, and one message of every type.
        for (let round = 0; round < 2 * types.length; round += 1) {
          noise()
          client.arriveOne()
        }
        assert.ok(client.messages.slice(from).some(({ names }) => names.includes('news')))
        client.connection.close()
      }),
      { numRuns: 50 },
    )
  })

  test('that does not read is sent what waits in one message a type when it reads on, however much changed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(2), fc.nat(4)), { minLength: 1, maxLength: 60 }), async (changes) => {
        const { sources, client } = await setUp()
        const from = client.messages.length
        for (const [index, [type, name]] of changes.entries()) {
          const source = sources[type]
          if (source !== undefined) change(source, `w${name}`, `${index}`, client.connection)
        }
        assert.equal(client.messages.length, from + 1, 'one message is on its way, whatever happens')
        client.arrive()
        const changed = new Set(changes.map(([type]) => type))
        assert.ok(client.messages.length <= from + 1 + changed.size)
        for (const [type, name] of changes) {
          const told = client.messages.slice(from).filter(({ typeUrl }) => typeUrl === types[type])
          assert.ok(told.some(({ names }) => names.includes(`w${name}`)))
        }
        client.connection.close()
      }),
      { numRuns: 50 },
    )
  })
})
