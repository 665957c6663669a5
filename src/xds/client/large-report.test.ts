// A client that holds more than fits into its first request.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { address, condition, namesOf, removedOf, startClient, startServer } from '../test-streams.ts'
import { createHoldings, firstRequest, recordUpdate } from './holdings.ts'

test('a report is no larger than servers take, and what is left out is noted until it is heard of', () => {
  const held = createHoldings({ typeUrl: address })
  const resources = Array.from({ length: 100_000 }, (_, index) => ({
    name: `cluster//Pod/namespace/workload-${index}`,
    aliases: [],
    version: 'f'.repeat(64),
    body: new Uint8Array(),
  }))
  recordUpdate(held, { typeUrl: address, resources, removed: [] }, { rejected: [] })
  const { initialResourceVersions } = firstRequest(held)
  const reported = Object.entries(initialResourceVersions)
  const bytes = reported.reduce((sum, [name, version]) => sum + name.length + version.length + 12, 0)
  assert.ok(bytes > 2.9 * 1024 * 1024 && bytes <= 3 * 1024 * 1024, `${bytes}`)
  assert.equal(held.unreported.size + reported.length, 100_000)
  const [first] = held.unreported
  assert.ok(first)
  const again = resources.filter(({ name }) => name === first)
  recordUpdate(held, { typeUrl: address, resources: again, removed: [] }, { rejected: [] })
  assert.ok(!held.unreported.has(first))
})

test('after a reconnect the rest is sent again, and what is gone meanwhile goes in the end', {
  timeout: 20_000,
}, async () => {
  await using first = await startServer()
  const names = Array.from({ length: 20 }, (_, index) => `w${String(index).padStart(2, '0')}`)
  first.addresses.change({ set: names.map((name) => ({ name, text: name })) })
  await using observed = startClient(first.port, {
    mostReportedBytes: 150,
    times: { mostRetryMs: 100, unreportedMs: 50 },
  })
  const { client, updates, until } = observed
  await client.synced
  assert.deepEqual(namesOf(updates), names)
  const before = updates.length
  await first.stop()
  first.addresses.change({ set: [{ name: 'w01', text: 'changed' }], remove: ['w00', 'w18', 'w19'] })
  await using _second = await startServer(first, { port: first.port })
  await until((all) => removedOf(all).includes('w18'))
  const told = updates.slice(before)
  assert.deepEqual([...removedOf(told)].sort(), ['w00', 'w18', 'w19'])
  const sent = new Set(namesOf(told))
  assert.ok(sent.has('w01') && sent.has('w17') && !sent.has('w02'), [...sent].join())
  // Nothing is left to be forgotten later.
  first.addresses.change({ set: [{ name: 'w17', text: 'once more' }] })
  await until((all) => namesOf(all.slice(-1)).includes('w17'))
  await condition(() => client.connected)
  assert.equal(removedOf(updates.slice(before)).length, 3)
})
