// Clients that do not read, that only send, and many at a time: what they cost the server and each other.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { DeltaClient } from './client/index.ts'
import { address, condition, namesOf, openRaw, stallingProxy, startClient, startServer } from './test-streams.ts'

describe('a client that does not read', { timeout: 60_000 }, () => {
  test('costs the server no more than the names of changed resources, and gets the newest state when it reads on', async () => {
    await using server = await startServer()
    const large = 'x'.repeat(100_000)
    const names = Array.from({ length: 50 }, (_, i) => `w${i}`)
    const stalled = await stallingProxy(server.port)
    await using observed = startClient(stalled.port)
    const { client, updates, until } = observed
    await client.synced
    stalled.pause()
    const memoryBefore = process.memoryUsage().arrayBuffers
    for (let round = 0; round < 60; round += 1) {
      server.addresses.change({ set: names.map((name) => ({ name, text: `${round}-${large}` })) })
      await new Promise((resolve) => setTimeout(resolve, 15))
    }
    const connection = server.xds.connections()[0]
    await condition(() => (connection?.watches.get(address)?.later.pending.size ?? 0) === names.length)
    const grown = process.memoryUsage().arrayBuffers - memoryBefore
    // 60 rounds of 5 MB were published; one round is kept by the source itself, some in one message and the sockets' buffers.
    assert.ok(grown < 120_000_000, `${grown} bytes`)
    stalled.resume()
    await until((all) => {
      const last = new Map(all.flatMap(({ resources }) => resources.map(({ name, body }) => [name, body] as const)))
      return names.every(
        (name) =>
          Buffer.from(last.get(name) ?? [])
            .subarray(0, 3)
            .toString() === '59-',
      )
    })
    assert.ok(updates.length < 40, `${updates.length} updates`)
    await stalled.close()
  })
})

describe('a client that only sends', { timeout: 30_000 }, () => {
  test('is read no further than it is answered, and does not disturb others', async () => {
    await using server = await startServer()
    server.addresses.change({
      set: Array.from({ length: 200 }, (_, i) => ({ name: `w${i}`, text: 'x'.repeat(10_000) })),
    })
    const stream = openRaw(server.port)
    const before = process.memoryUsage().arrayBuffers
    // Each would be answered by two megabytes.
    for (let i = 0; i < 2_000; i += 1) stream.send({ typeUrl: address })
    await using observed = startClient(server.port)
    await observed.client.synced
    server.addresses.change({ set: [{ name: 'w', text: 't' }] })
    await observed.until((all) => namesOf(all).includes('w'))
    assert.ok(process.memoryUsage().arrayBuffers - before < 100_000_000)
    stream.close()
  })
})

describe('many clients', { timeout: 30_000 }, () => {
  const running: DeltaClient[] = []
  after(async () => {
    await Promise.all(running.map((client) => client[Symbol.asyncDispose]()))
  })

  test('all get each change, and are forgotten when they leave', async () => {
    await using server = await startServer()
    const clients = Array.from({ length: 30 }, () => startClient(server.port))
    running.push(...clients.map(({ client }) => client))
    await Promise.all(clients.map(({ client }) => client.synced))
    server.addresses.change({ set: [{ name: 'w', text: 't' }] })
    await Promise.all(clients.map(({ until }) => until((all) => namesOf(all).includes('w'))))
    await Promise.all(running.map((client) => client[Symbol.asyncDispose]()))
    await condition(() => server.xds.connections().length === 0)
    await server.stop()
    assert.equal(server.addresses.listeners, 0)
  })
})
