// What wildcard and on-demand clients are told: at first, of changes, and after a reconnect.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  address,
  authorization,
  condition,
  namesOf,
  nodeId,
  removedOf,
  startClient,
  startServer,
} from './test-streams.ts'

describe('a wildcard client', { timeout: 20_000 }, () => {
  test('gets everything, policies first, then changes and removals', async () => {
    await using server = await startServer()
    server.addresses.change({
      set: [
        { name: 'w1', text: 'one' },
        { name: 'w2', text: 'two' },
      ],
    })
    server.policies.change({ set: [{ name: 'p1', text: 'policy' }] })
    await using observed = startClient(server.port)
    const { client, updates, until } = observed
    await client.synced
    assert.deepEqual(
      updates.map(({ typeUrl }) => typeUrl),
      [authorization, address],
    )
    assert.deepEqual(namesOf(updates), ['p1', 'w1', 'w2'])
    assert.equal(Buffer.from(updates[1]?.resources[0]?.body ?? []).toString(), 'one')
    server.addresses.change({ set: [{ name: 'w3', text: 'three' }], remove: ['w1'] })
    await until((all) => removedOf(all).includes('w1'))
    assert.deepEqual(namesOf(updates).slice(3), ['w3'])
  })

  test('sees new policies before addresses and removed policies after them', async () => {
    await using server = await startServer()
    server.policies.change({ set: [{ name: 'old', text: 'x' }] })
    await using observed = startClient(server.port)
    const { client, updates, until } = observed
    await client.synced
    server.policies.change({ set: [{ name: 'new', text: 'y' }], remove: ['old'] })
    server.addresses.change({ set: [{ name: 'w', text: 'uses new' }] })
    await until((all) => removedOf(all).includes('old'))
    assert.deepEqual(
      updates.slice(2).map((update) => [...namesOf([update]), ...update.removed.map((name) => `-${name}`)].join()),
      ['new', 'w', '-old'],
    )
  })

  test('after a restart of the server gets only what changed meanwhile', async () => {
    await using first = await startServer()
    first.addresses.change({
      set: [
        { name: 'same', text: 's' },
        { name: 'changes', text: 'a' },
        { name: 'goes', text: 'g' },
      ],
    })
    await using observed = startClient(first.port)
    const { client, updates, until } = observed
    await client.synced
    const before = updates.length
    await first.stop()
    first.addresses.change({ set: [{ name: 'changes', text: 'bb' }], remove: ['goes'] })
    await using _second = await startServer(first, { port: first.port })
    await until((all) => all.length >= before + 2)
    assert.deepEqual(namesOf(updates.slice(before)), ['changes'])
    assert.deepEqual(removedOf(updates.slice(before)), ['goes'])
  })

  test('that rejects one resource keeps the rest, names the reason, and gets it again after a reconnect', async () => {
    await using server = await startServer()
    server.addresses.change({
      set: [
        { name: 'good', text: 'g' },
        { name: 'bad', text: 'b' },
      ],
    })
    await using observed = startClient(server.port, {
      onUpdate: ({ resources }) => ({
        rejected: resources.filter(({ name }) => name === 'bad').map(({ name }) => ({ name, reason: 'malformed' })),
      }),
    })
    const { updates, until } = observed
    await until((all) => namesOf(all).includes('bad'))
    const lastError = () => server.xds.connections()[0]?.watches.get(address)?.lastError
    // A further policy is acknowledged after the rejection on the same stream.
    server.policies.change({ set: [{ name: 'p', text: 'p' }] })
    await until((all) => namesOf(all).includes('p'))
    await condition(() => lastError() === 'bad: malformed')
    await server.stop()
    const before = updates.length
    await using _second = await startServer(server, { port: server.port })
    await until((all) => namesOf(all.slice(before)).includes('bad'))
    assert.deepEqual(namesOf(updates.slice(before)), ['bad'])
  })
})

describe('an on-demand client', { timeout: 20_000 }, () => {
  test('gets its node, what it asks for, and the changes of both', async () => {
    await using server = await startServer()
    server.addresses.change({
      set: [
        { name: 'mine', text: 'm', node: 'node1' },
        { name: 'far', text: 'f', node: 'node2', aliases: ['/10.0.0.2'], services: ['ns/svc'] },
        { name: 'unrelated', text: 'u', node: 'node2' },
      ],
    })
    await using observed = startClient(server.port, { types: [{ typeUrl: address, onDemand: true }] })
    const { client, updates, until } = observed
    await until((all) => namesOf(all).includes('mine'))
    assert.deepEqual(namesOf(updates), ['mine'])
    client.subscribe(address, '/10.0.0.2')
    client.subscribe(address, '/10.0.0.9')
    await until((all) => removedOf(all).includes('/10.0.0.9'))
    assert.deepEqual(namesOf(updates), ['mine', 'far'])
    server.addresses.change({ set: [{ name: 'nine', text: 'n', node: 'node2', aliases: ['/10.0.0.9'] }] })
    await until((all) => namesOf(all).includes('nine'))
    server.addresses.change({ set: [{ name: 'unrelated', text: 'uu', node: 'node2' }], remove: ['far'] })
    await until((all) => removedOf(all).includes('far'))
    assert.ok(!namesOf(updates).includes('unrelated'))
  })
})

test('a client that knows its cluster by another name is one of that cluster', { timeout: 20_000 }, async () => {
  await using server = await startServer(undefined, { clusterAliases: new Map([['old', 'c1']]) })
  for (const [claimed, known] of [
    ['old', 'c1'],
    ['c1', 'c1'],
    ['other', 'other'],
    [undefined, undefined],
  ] as const) {
    const metadata = claimed === undefined ? {} : { CLUSTER_ID: claimed }
    await using observed = startClient(server.port, { node: { id: nodeId, metadata } })
    await observed.client.synced
    assert.equal(server.xds.connections().at(-1)?.node.metadata.CLUSTER_ID, known)
  }
})
