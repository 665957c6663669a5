import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server as TcpServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Client, credentials, Metadata, Server, ServerCredentials } from '@grpc/grpc-js'
import { createTestPki, type TestPki } from '../../test/support/test-pki.ts'
import { createMetricsRegistry, silentLogging } from '../observability/index.ts'
import { discovery } from '../proto/index.ts'
import { createDeltaClient, type DeltaClient, type DeltaClientOptions, type DeltaUpdate } from './client/index.ts'
import { createXdsServer, type XdsServer, type XdsServerOptions } from './index.ts'
import { createMemorySource, type MemorySource } from './testing.ts'

const address = 'type.googleapis.com/istio.workload.Address'
const authorization = 'type.googleapis.com/istio.security.Authorization'
const log = silentLogging().scope('test')
const nodeId = 'ztunnel~1.1.1.1~zt.istio-system~istio-system.svc.cluster.local'

interface Running extends AsyncDisposable {
  readonly xds: XdsServer
  readonly port: number
  readonly addresses: MemorySource
  readonly policies: MemorySource
  stop(): Promise<void>
}

let pki: TestPki
before(async () => {
  pki = await createTestPki()
})

async function startServer(
  sources?: { addresses: MemorySource; policies: MemorySource },
  overrides: Partial<XdsServerOptions> & { port?: number } = {},
): Promise<Running> {
  const addresses = sources?.addresses ?? createMemorySource(address, { onDemand: true })
  const policies = sources?.policies ?? createMemorySource(authorization)
  const xds = createXdsServer({
    types: [
      { source: policies, isWildcard: true, removals: 'last' },
      { source: addresses, isWildcard: true },
    ],
    authenticate: async (call) => {
      const [token] = call.metadata.get('authorization')
      if (token !== 'Bearer good') throw new Error('bad token')
      return ['spiffe://cluster.local/ns/istio-system/sa/ztunnel']
    },
    checkNodeIdentity: true,
    controlPlane: 'test',
    version: 'test',
    metrics: createMetricsRegistry(),
    log,
    ...overrides,
  })
  const serving = await pki.issue('localhost')
  const server = new Server()
  xds.addTo(server)
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(
      `127.0.0.1:${overrides.port ?? 0}`,
      ServerCredentials.createSsl(null, [
        { private_key: Buffer.from(serving.privateKey), cert_chain: Buffer.from(serving.chain) },
      ]),
      (error, bound) => (error === null ? resolve(bound) : reject(error)),
    )
  })
  const stop = async (): Promise<void> => {
    xds.close()
    server.forceShutdown()
  }
  return { xds, port, addresses, policies, stop, [Symbol.asyncDispose]: stop }
}

interface Observed extends AsyncDisposable {
  readonly client: DeltaClient
  readonly updates: DeltaUpdate[]
  /** Resolves once the condition holds, looked at after each update. */
  until(condition: (updates: readonly DeltaUpdate[]) => boolean): Promise<void>
}

function startClient(port: number, overrides: Partial<DeltaClientOptions> = {}): Observed {
  const updates: DeltaUpdate[] = []
  const waiting = new Set<() => void>()
  const client = createDeltaClient({
    address: `localhost:${port}`,
    transport: { kind: 'tls', roots: () => pki.roots },
    headers: () => ({ authorization: 'Bearer good' }),
    node: { id: nodeId, metadata: { NODE_NAME: 'node1' } },
    types: [{ typeUrl: address }, { typeUrl: authorization }],
    log,
    times: { mostRetryMs: 100 },
    ...overrides,
    onUpdate(update) {
      updates.push(update)
      const verdict = overrides.onUpdate?.(update) ?? { rejected: [] }
      queueMicrotask(() => {
        for (const look of waiting) look()
      })
      return verdict
    },
  })
  return {
    client,
    updates,
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
    until: (condition) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!condition(updates)) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
  }
}

const namesOf = (updates: readonly DeltaUpdate[]): string[] =>
  updates.flatMap(({ resources }) => resources.map(({ name }) => name))
const removedOf = (updates: readonly DeltaUpdate[]): string[] => updates.flatMap(({ removed }) => removed)

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

describe('raw requests', { timeout: 20_000 }, () => {
  test('stale nonces and unknown types are not answered', async () => {
    await using server = await startServer()
    server.addresses.change({ set: [{ name: 'w', text: '1' }] })
    const stream = openRaw(server.port)
    stream.send({ typeUrl: 'type.googleapis.com/unknown.Type' })
    stream.send({ typeUrl: address })
    const first = await stream.next()
    server.addresses.change({ set: [{ name: 'w', text: '22' }] })
    const second = await stream.next()
    assert.notEqual(first.nonce, second.nonce)
    assert.notEqual(first.systemVersionInfo, second.systemVersionInfo)
    stream.send({ typeUrl: address, responseNonce: first.nonce })
    stream.send({ typeUrl: address, responseNonce: second.nonce })
    // A spontaneous request of this type is answered; nothing may come before.
    stream.send({ typeUrl: address })
    const third = await stream.next()
    assert.equal(third.resources.length, 1)
    assert.equal(server.xds.connections()[0]?.watches.get(address)?.nonceAcked, second.nonce)
    stream.close()
  })
})

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
    await condition(() => (connection?.watches.get(address)?.pending.size ?? 0) === names.length)
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

/** Waits for a condition of another part of the process, which tells nobody when it changes. */
async function condition(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5))
}

function openRaw(port: number) {
  const client = new Client(`localhost:${port}`, credentials.createSsl(Buffer.from(pki.roots)))
  const metadata = new Metadata()
  metadata.set('authorization', 'Bearer good')
  const call = client.makeBidiStreamRequest(
    '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
    (request: discovery.DeltaDiscoveryRequest) => Buffer.from(toBinary(discovery.DeltaDiscoveryRequestSchema, request)),
    (bytes: Buffer) => fromBinary(discovery.DeltaDiscoveryResponseSchema, bytes),
    metadata,
  )
  call.on('error', () => {})
  const responses = call[Symbol.asyncIterator]()
  return {
    send(fields: { readonly typeUrl: string; readonly responseNonce?: string }) {
      call.write(create(discovery.DeltaDiscoveryRequestSchema, { node: { id: nodeId }, ...fields }))
    },
    next: async () => (await responses.next()).value as discovery.DeltaDiscoveryResponse,
    close() {
      call.cancel()
      client.close()
    },
  }
}

/** A TCP relay that can stop reading from the server, as a client that hangs does. */
async function stallingProxy(port: number) {
  const { connect } = await import('node:net')
  const upstreams = new Set<ReturnType<typeof connect>>()
  const relay: TcpServer = createServer((client) => {
    const upstream = connect({ port, host: '127.0.0.1' })
    upstreams.add(upstream)
    client.pipe(upstream)
    upstream.on('data', (chunk) => client.write(chunk))
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => {})
      one.on('close', () => other.destroy())
    }
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  return {
    port: (relay.address() as AddressInfo).port,
    pause: () => {
      for (const upstream of upstreams) upstream.pause()
    },
    resume: () => {
      for (const upstream of upstreams) upstream.resume()
    },
    close: async () => {
      for (const upstream of upstreams) upstream.destroy()
      relay.close()
      await once(relay, 'close')
    },
  }
}
