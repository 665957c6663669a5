// What a client that means harm may cost: memory, and lines of the log.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, toBinary } from '@bufbuild/protobuf'
import { status } from '@grpc/grpc-js'
import { createMetricsRegistry, renderMetrics } from '../observability/index.ts'
import { discovery } from '../proto/index.ts'
import { readRequest } from './server/request.ts'
import { address, condition, log, openRaw, startServer } from './test-streams.ts'

test('names are held up to a bound, whatever each of them takes', { timeout: 30_000 }, async () => {
  await using server = await startServer()
  const client = openRaw(server.port)
  client.send({ typeUrl: address, resourceNamesSubscribe: ['first'] })
  await client.next()
  const ended = assert.rejects(async () => {
    for (;;) await client.next()
  }, /RESOURCE_EXHAUSTED: the names subscribed to take more than \d+ bytes/)
  for (let at = 0; at < 35; at += 1) {
    client.send({ typeUrl: address, resourceNamesSubscribe: [`${at}${'x'.repeat(2 * 1024 * 1024)}`] })
  }
  await ended
  client.close()
})

test('a request with more names than may be held is not even decoded, and what is no request ends its stream', () => {
  const names = (count: number) => Buffer.alloc(count * 3, Buffer.from([0x1a, 1, 0x61]))
  const read = readRequest('sotw', names(2))
  assert.ok(read.kind === 'sotw')
  assert.deepEqual([read.message.resourceNames, read.bytes], [['a', 'a'], 6])
  for (const kind of ['sotw', 'delta'] as const) {
    assert.throws(() => readRequest(kind, names(1_100_000)), { code: status.RESOURCE_EXHAUSTED })
    assert.throws(() => readRequest(kind, Buffer.from([0x1a, 100, 1])), { code: status.INVALID_ARGUMENT })
  }
})

test('a node with more values than may be held is not decoded, and no number of known versions is too many for that', () => {
  const node = (count: number) => ({ metadata: { list: Array.from({ length: count }, () => null) } })
  const sotw = (count: number) =>
    Buffer.from(
      toBinary(discovery.DiscoveryRequestSchema, create(discovery.DiscoveryRequestSchema, { node: node(count) })),
    )
  assert.equal(readRequest('sotw', sotw(1000)).kind, 'sotw')
  assert.throws(() => readRequest('sotw', sotw(300_000)), {
    code: status.RESOURCE_EXHAUSTED,
    message: /node, error and locators/,
  })
  const initialResourceVersions = Object.fromEntries(
    Array.from({ length: 100_000 }, (_, at) => [`cluster//Pod/ns/${at}`, '1']),
  )
  const delta = create(discovery.DeltaDiscoveryRequestSchema, { initialResourceVersions })
  assert.equal(readRequest('delta', Buffer.from(toBinary(discovery.DeltaDiscoveryRequestSchema, delta))).kind, 'delta')
})

test('a rejection is logged once a message, and cut', { timeout: 30_000 }, async () => {
  const lines: string[] = []
  const warn = (message: string, fields?: Readonly<Record<string, unknown>>): void => {
    lines.push(`${message}: ${fields?.reason}`)
  }
  await using server = await startServer(undefined, { log: { ...log, warn } })
  const client = openRaw(server.port)
  client.send({ typeUrl: address })
  const { nonce: responseNonce } = await client.next()
  const code = 13
  for (let at = 0; at < 100; at += 1) {
    client.send({ typeUrl: address, responseNonce, errorDetail: { code, message: `no ${'x'.repeat(5_000)}` } })
  }
  const watch = () => server.xds.connections()[0]?.watches.get(address)
  client.send({ typeUrl: address, responseNonce })
  await condition(() => watch()?.nonceAcked === responseNonce)
  assert.deepEqual(lines, [`a client rejects what it was sent: no ${'x'.repeat(997)}…`])
  client.close()
})

test('types that a client makes up are counted as one', { timeout: 30_000 }, async () => {
  const metrics = createMetricsRegistry()
  await using server = await startServer(undefined, {
    metrics,
    otherType: (_client, typeUrl) => ({ typeUrl, answer: () => [] }),
  })
  const client = openRaw(server.port)
  for (const typeUrl of [address, 'made.up/v1/A', 'made.up/v1/B']) {
    client.send({ typeUrl })
    await client.next()
  }
  client.close()
  const text = await renderMetrics(metrics, 'text')
  assert.deepEqual(
    text.split('\n').filter((line) => line.startsWith('pilot_xds_pushes{')),
    ['pilot_xds_pushes{type="wds"} 1', 'pilot_xds_pushes{type="other"} 2'],
  )
  assert.doesNotMatch(text, /made\.up/)
})

test('of more requests than may wait none stays unanswered', { timeout: 20_000 }, async () => {
  await using server = await startServer()
  const names = Array.from({ length: 200 }, (_, index) => `w${index}`)
  server.addresses.change({ set: names.map((name) => ({ name, text: name })) })
  const client = openRaw(server.port)
  try {
    for (const round of [names.slice(0, 100), names.slice(100)]) {
      const awaited = new Set(round)
      for (const name of round) client.send({ typeUrl: address, resourceNamesSubscribe: [name] })
      while (awaited.size > 0) for (const { name } of (await client.next()).resources) awaited.delete(name)
    }
  } finally {
    client.close()
  }
})
