// A delta stream to a control plane of which each request is the test's own.
import { create, fromBinary, type JsonObject, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { discovery } from '../../src/proto/index.ts'

export type DeltaRequest = Omit<MessageInitShape<typeof discovery.DeltaDiscoveryRequestSchema>, '$typeName'>

export interface DeltaStream {
  send(request: DeltaRequest): void
  /** The next response; rejects when the stream ends before. */
  next(): Promise<discovery.DeltaDiscoveryResponse>
  /** How the stream was ended from the other side. */
  readonly ended: Promise<ServiceError>
  close(): void
}

export interface StreamOptions {
  /** With these roots over TLS; without in plain text. */
  readonly roots?: string
  /** By default that of the control plane's Service. */
  readonly serverName?: string
  /** A certificate of the client, with its key. */
  readonly certificate?: { readonly key: string; readonly pem: string }
  readonly headers?: Readonly<Record<string, string>>
}

const method = '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources'

export function clientTo(
  port: number,
  { roots, certificate, serverName = 'istiod.istio-system.svc' }: StreamOptions,
): Client {
  const { key, pem } = certificate ?? {}
  const channel: ChannelCredentials =
    roots === undefined
      ? credentials.createInsecure()
      : credentials.createSsl(Buffer.from(roots), key ? Buffer.from(key) : null, pem ? Buffer.from(pem) : null)
  return new Client(`127.0.0.1:${port}`, channel, {
    ...(roots === undefined ? {} : { 'grpc.ssl_target_name_override': serverName }),
    'grpc.use_local_subchannel_pool': 1,
  })
}

export function metadataOf(headers: Readonly<Record<string, string>> = {}): Metadata {
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
  return metadata
}

export function openDeltaStream(port: number, options: StreamOptions): DeltaStream {
  const client = clientTo(port, options)
  const call = client.makeBidiStreamRequest(
    method,
    (request: discovery.DeltaDiscoveryRequest) => Buffer.from(toBinary(discovery.DeltaDiscoveryRequestSchema, request)),
    (bytes: Buffer) => fromBinary(discovery.DeltaDiscoveryResponseSchema, bytes),
    metadataOf(options.headers),
  )
  const ended = Promise.withResolvers<ServiceError>()
  call.on('error', (error: ServiceError) => ended.resolve(error))
  const responses = call[Symbol.asyncIterator]()
  return {
    send: (request) => void call.write(create(discovery.DeltaDiscoveryRequestSchema, request)),
    async next() {
      const { value, done } = await responses.next()
      if (done === true) throw await ended.promise
      return value as discovery.DeltaDiscoveryResponse
    },
    ended: ended.promise,
    close() {
      call.cancel()
      client.close()
    },
  }
}

/** `sidecar` or `ztunnel` with its name and namespace, as it introduces itself. */
export const nodeOf = (type: string, name: string, namespace: string, metadata: JsonObject = {}) => ({
  id: `${type}~127.0.0.1~${name}.${namespace}~${namespace}.svc.cluster.local`,
  metadata: { NAMESPACE: namespace, ...metadata },
})

/** `served`, or the status and the reason with which the stream ended. */
export async function outcomeOf(port: number, options: StreamOptions, request: DeltaRequest): Promise<string> {
  const stream = openDeltaStream(port, options)
  try {
    stream.send(request)
    const ended = stream.ended.then(({ code, details }) => `${status[code]}: ${details}`)
    return await Promise.race([
      stream.next().then(
        () => 'served',
        () => ended,
      ),
      ended,
    ])
  } finally {
    stream.close()
  }
}
