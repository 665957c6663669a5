// Who gets no stream: bad credentials, untrusted servers, servers that are not ready or silent.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, test } from 'node:test'
import { status } from '@grpc/grpc-js'
import { createTestPki } from '../../test/support/test-pki.ts'
import { createMetricsRegistry, renderMetrics } from '../observability/index.ts'
import { address, authorization, log, namesOf, nodeId, openRaw, pki, startClient, startServer } from './test-streams.ts'
import { createMemorySource } from './testing.ts'

describe('refusals', { timeout: 20_000 }, () => {
  test('a bad token, an untrusted server and a foreign namespace never sync', async () => {
    await using server = await startServer()
    const refused = [
      { headers: () => ({ authorization: 'Bearer bad' }) },
      { transport: { kind: 'tls' as const, roots: async () => (await createTestPki()).roots } },
      { transport: { kind: 'tls' as const, roots: () => pki.roots, serverName: 'other.example' } },
      { node: { id: nodeId, metadata: { NAMESPACE: 'elsewhere' } } },
      { node: { id: 'nonsense', metadata: {} } },
    ]
    for (const overrides of refused) {
      const ended = Promise.withResolvers<void>()
      let attempts = 0
      await using observed = startClient(server.port, {
        ...overrides,
        log: { ...log, log: () => (++attempts === 2 ? ended.resolve() : undefined) },
      })
      const { client, updates } = observed
      await ended.promise
      assert.deepEqual(updates, [], JSON.stringify(overrides))
      assert.equal(client.connected, false)
    }
    assert.deepEqual(server.xds.connections(), [])
  })

  test('a server whose sources are not read yet says so, and the client gets in later', async () => {
    const addresses = createMemorySource(address, { onDemand: true })
    addresses.synced = false
    await using server = await startServer({ addresses, policies: createMemorySource(authorization) })
    const refused = Promise.withResolvers<string>()
    await using observed = startClient(server.port, {
      log: { ...log, log: (_level, _message, fields) => refused.resolve(String(fields?.reason)) },
    })
    const { client } = observed
    assert.match(await refused.promise, /server is not ready to serve discovery information/)
    addresses.synced = true
    await client.synced
  })
})

test('a server that is to warm up refuses the first stream, and serves the same client when it comes again', {
  timeout: 20_000,
}, async () => {
  const reasons: unknown[] = []
  await using server = await startServer(undefined, { refusesFirst: true })
  await using observed = startClient(server.port, {
    times: { leastRetryMs: 10, mostRetryMs: 20 },
    log: { ...log, log: (_level, _message, fields) => void reasons.push(fields?.reason) },
  })
  await observed.client.synced
  assert.match(String(reasons[0]), /server warmup not complete; try again/)
  assert.equal(reasons.length, 1)
})

describe('a server that accepts and says nothing', { timeout: 20_000 }, () => {
  test('is given up after the connect timeout, and tried again', async () => {
    const silent = createServer((socket) => socket.on('error', () => {}).resume())
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const reasons: string[] = []
    const twice = Promise.withResolvers<void>()
    const { port } = silent.address() as AddressInfo
    {
      await using _observed = startClient(port, {
        times: { connectTimeoutMs: 100, mostRetryMs: 50 },
        log: {
          ...log,
          log(_level, _message, fields) {
            if (reasons.push(String(fields?.reason)) === 2) twice.resolve()
          },
        },
      })
      await twice.promise
    }
    assert.match(reasons[0] ?? '', /no connection within 100 ms/)
    silent.close()
    await once(silent, 'close')
  })
})

test('more streams at once than are taken wait or are told to come again, and all get in', {
  timeout: 20_000,
}, async () => {
  const metrics = createMetricsRegistry()
  await using server = await startServer(undefined, { streamsPerSecond: 10, metrics })
  const reasons: string[] = []
  const clients = Array.from({ length: 25 }, () =>
    startClient(server.port, {
      log: { ...log, log: (_level, _message, fields) => void reasons.push(String(fields?.reason)) },
    }),
  )
  await Promise.all(clients.map(({ client }) => client.synced))
  assert.ok(reasons.some((reason) => /request rate limit exceeded: 10 new streams a second/.test(reason)))
  for (const client of clients) await client[Symbol.asyncDispose]()
})

test('callers who are nobody take no place of those who are somebody', { timeout: 20_000 }, async () => {
  let lines = 0
  const warn = (): void => {
    lines += 1
  }
  await using server = await startServer(undefined, { streamsPerSecond: 5, log: { ...log, warn } })
  const strangers = Array.from({ length: 200 }, () => openRaw(server.port, 'Bearer bad'))
  const ends = await Promise.all(
    strangers.map(async (stranger) => {
      stranger.send({ typeUrl: address })
      return stranger.next().then(String, String)
    }),
  )
  for (const stranger of strangers) stranger.close()
  assert.deepEqual(new Set(ends), new Set(['Error: 16 UNAUTHENTICATED: authentication failure']))
  assert.ok(lines < 200, `${lines} lines`)
})

test('an error of our own ends the stream that meets it, is counted, and is told to the log alone', {
  timeout: 20_000,
}, async () => {
  const metrics = createMetricsRegistry()
  const reasons: unknown[] = []
  const broken = {
    typeUrl: 'broken',
    answer: () => {
      throw new TypeError('secret detail')
    },
  }
  await using server = await startServer(undefined, {
    metrics,
    oneShots: [broken],
    log: { ...log, error: (_message, fields) => void reasons.push(fields?.reason) },
  })
  await using other = startClient(server.port)
  await other.client.synced
  const stream = openRaw(server.port)
  stream.send({ typeUrl: 'broken' })
  await assert.rejects(stream.next(), { code: status.INTERNAL, details: 'internal error' })
  stream.close()
  assert.deepEqual(reasons, ['secret detail'])
  assert.match(await renderMetrics(metrics, 'text'), /^pilot_total_xds_internal_errors 1$/m)
  server.addresses.change({ set: [{ name: 'a', text: 'A' }] })
  await other.until((updates) => namesOf(updates).includes('a'))
})
