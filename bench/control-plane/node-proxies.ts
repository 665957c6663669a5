// A process of simulated node proxies: real incremental xDS streams over TLS, that acknowledge what they get and keep only counts.
// Talks to its parent in messages: see Order and Told.
import { setTimeout as sleep } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { BinaryReader } from '@bufbuild/protobuf/wire'
import { type ChannelCredentials, Client, type ClientDuplexStream, credentials, Metadata, status } from '@grpc/grpc-js'
import { discovery } from '../../src/proto/index.ts'
import { deltaMethod } from '../../src/xds/client/stream.ts'

export type Order =
  | { readonly kind: 'connect'; readonly count: number; readonly address: string; readonly roots: string }
  /** All connections are cut at once, and made again by proxies that tell what they hold. */
  | { readonly kind: 'reconnect' }
  /** Tell when a resource of this name has been acknowledged by everyone. */
  | { readonly kind: 'await'; readonly names: readonly string[] }
  | { readonly kind: 'end' }

export type Told =
  | {
      readonly kind: 'connected'
      readonly firstSyncMs: number
      readonly lastSyncMs: number
      readonly resources: number
      readonly bytes: number
    }
  | { readonly kind: 'reconnected'; readonly ms: number; readonly resources: number; readonly bytes: number }
  | { readonly kind: 'acknowledged'; readonly name: string; readonly at: bigint; readonly bytes: number }

type Stream = ClientDuplexStream<Buffer, Response>

interface Response {
  readonly typeUrl: string
  readonly nonce: string
  readonly resources: readonly Resource[]
  readonly bytes: number
}

interface Resource {
  readonly name: string
  readonly version: string
}

/** By type and name. */
type Versions = ReadonlyMap<string, Readonly<Record<string, string>>>

interface Synced {
  readonly ms: number
  readonly resources: number
}

interface Plane {
  readonly address: string
  readonly channel: ChannelCredentials
}

const types = ['type.googleapis.com/istio.workload.Address', 'type.googleapis.com/istio.security.Authorization']
const waiting = new Map<string, number>()
const clients: Client[] = []
/** What every proxy holds: the versions of what the first of them got, by type. */
const held = new Map(types.map((type) => [type, new Map<string, string>()]))
let plane: Plane | undefined
let bytes = 0

async function connectAll({ count, address, roots }: Extract<Order, { kind: 'connect' }>): Promise<void> {
  plane = { address, channel: credentials.createSsl(Buffer.from(roots)) }
  const to = plane
  const first = await connectWhenTaken(0, to)
  const started = performance.now()
  const rest = await Promise.all(Array.from({ length: count - 1 }, (_, at) => connectWhenTaken(at + 1, to)))
  const lastSyncMs = rest.length === 0 ? first.ms : performance.now() - started
  tell({ kind: 'connected', firstSyncMs: first.ms, lastSyncMs, resources: first.resources, bytes })
  bytes = 0
}

async function reconnectAll(): Promise<void> {
  if (plane === undefined) throw new Error('nobody is connected')
  const to = plane
  const count = clients.length
  for (const client of clients.splice(0)) client.close()
  const versions = new Map(types.map((type) => [type, Object.fromEntries(held.get(type) ?? [])]))
  bytes = 0
  const started = performance.now()
  const all = await Promise.all(Array.from({ length: count }, (_, at) => connectWhenTaken(at, to, versions)))
  const resources = all.reduce((sum, one) => sum + one.resources, 0)
  tell({ kind: 'reconnected', ms: performance.now() - started, resources, bytes })
  bytes = 0
}

/** When many come at once some are told to come again. */
async function connectWhenTaken(at: number, to: Plane, versions?: Versions): Promise<Synced> {
  for (;;) {
    try {
      return await connectOne(at, to, versions)
    } catch (error) {
      if ((error as { code?: unknown }).code !== status.RESOURCE_EXHAUSTED) throw error
      await sleep(100 + Math.random() * 400)
    }
  }
}

function connectOne(at: number, { address, channel }: Plane, versions?: Versions): Promise<Synced> {
  const client = new Client(address, channel, {
    'grpc.max_receive_message_length': 200 * 1024 * 1024,
    'grpc.use_local_subchannel_pool': 1,
    'grpc.ssl_target_name_override': 'istiod.istio-system.svc',
    'grpc.default_authority': 'istiod.istio-system.svc',
  })
  const metadata = new Metadata()
  metadata.set('authorization', 'Bearer bench')
  const started = performance.now()
  const synced = Promise.withResolvers<Synced>()
  const stream: Stream = client.makeBidiStreamRequest(deltaMethod, (request: Buffer) => request, read, metadata)
  const seen = new Set<string>()
  let resources = 0
  stream.on('data', (response: Response) => {
    stream.write(encoded({ typeUrl: response.typeUrl, responseNonce: response.nonce }))
    bytes += response.bytes
    seen.add(response.typeUrl)
    if (seen.size <= types.length) resources += response.resources.length
    if (seen.size === types.length) synced.resolve({ ms: performance.now() - started, resources })
    for (const { name, version } of response.resources) {
      if (at === 0) held.get(response.typeUrl)?.set(name, version)
      acknowledged(name)
    }
  })
  stream.on('error', (error) => {
    client.close()
    synced.reject(error)
  })
  const node = {
    id: `ztunnel~10.0.0.1~ztunnel-${at}.istio-system~istio-system.svc.cluster.local`,
    metadata: { NODE_NAME: `node-${at}`, NAMESPACE: 'istio-system' },
  }
  for (const typeUrl of types) {
    stream.write(encoded({ typeUrl, node, initialResourceVersions: { ...versions?.get(typeUrl) } }))
  }
  return synced.promise.then((one) => {
    clients.push(client)
    return one
  })
}

function acknowledged(name: string): void {
  const left = waiting.get(name)
  if (left === undefined) return
  if (left > 1) {
    waiting.set(name, left - 1)
    return
  }
  waiting.delete(name)
  tell({ kind: 'acknowledged', name, at: process.hrtime.bigint(), bytes })
}

function encoded(fields: Parameters<typeof create<typeof discovery.DeltaDiscoveryRequestSchema>>[1]): Buffer {
  return Buffer.from(
    toBinary(discovery.DeltaDiscoveryRequestSchema, create(discovery.DeltaDiscoveryRequestSchema, fields)),
  )
}

/** Only what is needed is decoded: the proxies are to cost little of the machine they share. */
function read(message: Buffer): Response {
  const reader = new BinaryReader(message)
  let typeUrl = ''
  let nonce = ''
  const resources: Resource[] = []
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag()
    if (field === 4) typeUrl = reader.string()
    else if (field === 5) nonce = reader.string()
    else if (field === 2) resources.push(resourceOf(reader.bytes()))
    else reader.skip(wire, field)
  }
  return { typeUrl, nonce, resources, bytes: message.byteLength }
}

/** The body comes last and is not looked at. */
function resourceOf(resource: Uint8Array): Resource {
  const reader = new BinaryReader(resource)
  let name = ''
  let version = ''
  while (reader.pos < reader.len && (name === '' || version === '')) {
    const [field, wire] = reader.tag()
    if (field === 3) name = reader.string()
    else if (field === 1) version = reader.string()
    else reader.skip(wire, field)
  }
  return { name, version }
}

function tell(told: Told): void {
  process.send?.(told)
}

function fail(error: unknown): void {
  process.stderr.write(`${error}\n`)
  process.exit(1)
}

process.on('message', (order: Order) => {
  switch (order.kind) {
    case 'connect':
      connectAll(order).catch(fail)
      return
    case 'reconnect':
      reconnectAll().catch(fail)
      return
    case 'await':
      for (const name of order.names) waiting.set(name, clients.length)
      return
    case 'end':
      for (const client of clients) client.close()
      process.exit(0)
  }
})
process.on('disconnect', () => process.exit(0))
