// For tests: a server over TLS, clients that keep what they were told, and streams written by hand.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server as TcpServer } from 'node:net'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Client, credentials, Metadata } from '@grpc/grpc-js'
import { createTestPki } from '../../test/support/test-pki.ts'
import { type ConnectionLimits, createConnections, type GrpcConnections, openGrpcPort } from '../grpc/server/index.ts'
import { createMetricsRegistry, silentLogging } from '../observability/index.ts'
import { discovery } from '../proto/index.ts'
import { createDeltaClient, type DeltaClient, type DeltaClientOptions, type DeltaUpdate } from './client/index.ts'
import { createXdsServer, type XdsServer, type XdsServerOptions } from './index.ts'
import { createMemorySource, type MemorySource } from './testing.ts'

export const address = 'type.googleapis.com/istio.workload.Address'
export const authorization = 'type.googleapis.com/istio.security.Authorization'
export const log = silentLogging().scope('test')
export const nodeId = 'ztunnel~1.1.1.1~zt.istio-system~istio-system.svc.cluster.local'
export const pki = await createTestPki()

export interface Running extends AsyncDisposable {
  readonly xds: XdsServer
  readonly port: number
  readonly connections: GrpcConnections
  readonly addresses: MemorySource
  readonly policies: MemorySource
  stop(): Promise<void>
}

export async function startServer(
  sources?: { addresses: MemorySource; policies: MemorySource },
  overrides: Partial<XdsServerOptions> & { port?: number; limits?: Partial<ConnectionLimits> } = {},
): Promise<Running> {
  const connections = createConnections({ provingMs: 30_000, idleMs: 300_000, mostUnproven: 100, ...overrides.limits })
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
      connections.of(call)?.connection.admit()
      return ['spiffe://cluster.local/ns/istio-system/sa/ztunnel']
    },
    checkNodeIdentity: true,
    transportOf: (call) => connections.of(call),
    controlPlane: 'test',
    version: 'test',
    metrics: createMetricsRegistry(),
    log,
    ...overrides,
  })
  const serving = await pki.issue('localhost')
  const { privateKey: key, chain: cert } = serving
  const port = await openGrpcPort({
    host: '127.0.0.1',
    port: overrides.port ?? 0,
    tls: { key, cert },
    channel: { 'grpc.max_receive_message_length': 16 * 1024 * 1024 },
    connections,
    addServices: (server) => xds.addTo(server),
  })
  const stop = async (): Promise<void> => {
    xds.close()
    await port.close(0)
  }
  return { xds, port: port.port, connections, addresses, policies, stop, [Symbol.asyncDispose]: stop }
}

export interface Observed extends AsyncDisposable {
  readonly client: DeltaClient
  readonly updates: DeltaUpdate[]
  /** Resolves once the condition holds, looked at after each update. */
  until(condition: (updates: readonly DeltaUpdate[]) => boolean): Promise<void>
}

export function startClient(port: number, overrides: Partial<DeltaClientOptions> = {}): Observed {
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

export const namesOf = (updates: readonly DeltaUpdate[]): string[] =>
  updates.flatMap(({ resources }) => resources.map(({ name }) => name))
export const removedOf = (updates: readonly DeltaUpdate[]): string[] => updates.flatMap(({ removed }) => removed)

/** Waits for a condition of another part of the process, which tells nobody when it changes. */
export async function condition(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** A delta stream of which each request is the test's own. */
export function openRaw(port: number, token = 'Bearer good') {
  const client = new Client(`localhost:${port}`, credentials.createSsl(Buffer.from(pki.roots)))
  const metadata = new Metadata()
  metadata.set('authorization', token)
  const call = client.makeBidiStreamRequest(
    '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
    (request: discovery.DeltaDiscoveryRequest) => Buffer.from(toBinary(discovery.DeltaDiscoveryRequestSchema, request)),
    (bytes: Buffer) => fromBinary(discovery.DeltaDiscoveryResponseSchema, bytes),
    metadata,
  )
  call.on('error', () => {})
  const responses = call[Symbol.asyncIterator]()
  return {
    send(fields: {
      readonly typeUrl: string
      readonly responseNonce?: string
      readonly resourceNamesSubscribe?: string[]
      readonly errorDetail?: { readonly code: number; readonly message: string }
    }) {
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
export async function stallingProxy(port: number) {
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
