// One stream of a case: real requests over a real connection, and what came back until it was quiet.
import { create, fromBinary, fromJson, type JsonValue, toBinary } from '@bufbuild/protobuf'
import { Client, credentials } from '@grpc/grpc-js'
import { core, discovery, rpc } from '../../../src/proto/index.ts'

export type Protocol = 'delta' | 'sotw'

export interface Received {
  readonly stream: string
  readonly type: string
  readonly names: readonly string[]
  readonly removed: readonly string[]
  readonly nonce: string
  readonly version: string
  readonly resourceVersions: Readonly<Record<string, string>>
  readonly endpoints: Readonly<Record<string, readonly string[]>>
}

export interface SendFields {
  readonly typeUrl: string
  readonly resourceNames?: readonly string[]
  readonly resourceNamesSubscribe?: readonly string[]
  readonly resourceNamesUnsubscribe?: readonly string[]
  readonly initialResourceVersions?: Readonly<Record<string, string>>
  readonly responseNonce?: string
  readonly versionInfo?: string
  readonly errorDetail?: { readonly code: number; readonly message: string }
}

export interface CaseStream {
  send(fields: SendFields): void
  /** The gRPC status code, once the stream ended. */
  readonly ended: Promise<number>
  close(): void
}

export interface CaseNode {
  readonly id: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

const methods: Readonly<Record<Protocol, string>> = {
  delta: '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
  sotw: '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
}

/** Resolves when the connection is made, so that what follows is timed without it. */
export async function openStream(
  options: { readonly port: number; readonly protocol: Protocol; readonly node: CaseNode; readonly name: string },
  receive: (message: Received) => void,
): Promise<CaseStream> {
  const client = new Client(`127.0.0.1:${options.port}`, credentials.createInsecure())
  await new Promise<void>((resolve, reject) => {
    client.waitForReady(Date.now() + 10_000, (error) => (error === undefined ? resolve() : reject(error)))
  })
  const ended = Promise.withResolvers<number>()
  const delta = options.protocol === 'delta'
  const call = client.makeBidiStreamRequest(
    methods[options.protocol],
    (bytes: Buffer) => bytes,
    (bytes: Buffer) => (delta ? readDelta(bytes, options.name) : readSotw(bytes, options.name)),
    {},
  )
  let isFirst = true
  call.on('data', receive)
  call.on('error', (error: { code?: number }) => ended.resolve(error.code ?? -1))
  call.on('end', () => ended.resolve(0))
  return {
    ended: ended.promise,
    send(fields) {
      const { id, metadata = {} } = options.node
      const node = isFirst
        ? { node: create(core.NodeSchema, { id, metadata: metadata as Record<string, JsonValue> }) }
        : {}
      isFirst = false
      const errorDetail = fields.errorDetail === undefined ? {} : { errorDetail: statusOf(fields.errorDetail) }
      const { typeUrl, responseNonce = '' } = fields
      const common = { typeUrl, responseNonce, ...node, ...errorDetail }
      const bytes = delta
        ? toBinary(
            discovery.DeltaDiscoveryRequestSchema,
            create(discovery.DeltaDiscoveryRequestSchema, {
              ...common,
              resourceNamesSubscribe: [...(fields.resourceNamesSubscribe ?? [])],
              resourceNamesUnsubscribe: [...(fields.resourceNamesUnsubscribe ?? [])],
              initialResourceVersions: { ...fields.initialResourceVersions },
            }),
          )
        : toBinary(
            discovery.DiscoveryRequestSchema,
            create(discovery.DiscoveryRequestSchema, {
              ...common,
              resourceNames: [...(fields.resourceNames ?? [])],
              versionInfo: fields.versionInfo ?? '',
            }),
          )
      call.write(Buffer.from(bytes))
    },
    close() {
      call.cancel()
      client.close()
    },
  }
}

function statusOf(detail: { readonly code: number; readonly message: string }): rpc.Status {
  return fromJson(rpc.StatusSchema, { ...detail })
}

function readDelta(bytes: Buffer, stream: string): Received {
  const message = fromBinary(discovery.DeltaDiscoveryResponseSchema, bytes)
  return {
    stream,
    type: message.typeUrl,
    names: message.resources.map(({ name }) => name),
    removed: message.removedResources,
    nonce: message.nonce,
    version: message.systemVersionInfo,
    resourceVersions: Object.fromEntries(message.resources.map(({ name, version }) => [name, version])),
    endpoints: endpointsOf(message.resources.map(({ resource }) => resource?.value ?? new Uint8Array())),
  }
}

function readSotw(bytes: Buffer, stream: string): Received {
  const message = fromBinary(discovery.DiscoveryResponseSchema, bytes)
  const bodies = message.resources.map(({ value }) => value)
  return {
    stream,
    type: message.typeUrl,
    names: bodies.map((body) => contentOf(body)?.name ?? ''),
    removed: [],
    nonce: message.nonce,
    version: message.versionInfo,
    resourceVersions: {},
    endpoints: endpointsOf(bodies),
  }
}

function endpointsOf(bodies: readonly Uint8Array[]): Record<string, readonly string[]> {
  return Object.fromEntries(
    bodies.flatMap((body) => {
      const content = contentOf(body)
      return content?.endpoints === undefined ? [] : [[content.name, content.endpoints]]
    }),
  )
}

/** The Envoy resources of the registry are written as JSON; those of the Workload API are not. */
function contentOf(body: Uint8Array): { name: string; endpoints?: string[] } | undefined {
  const text = Buffer.from(body).toString()
  return text.startsWith('{"name"') ? (JSON.parse(text) as { name: string; endpoints?: string[] }) : undefined
}
