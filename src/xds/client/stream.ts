// One connection and one delta stream, from connecting to its end.
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  type ChannelOptions,
  Client,
  connectivityState,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js'
import { AbandonableCredentials } from '../../grpc/index.ts'
import { discovery } from '../../proto/index.ts'
import { acceptServerNames } from '../../util/index.ts'
import type { DeltaRequest } from './holdings.ts'
import type { DeltaClientOptions, DeltaClientTimes } from './options.ts'
import type { StreamEnd } from './recycling.ts'

export const deltaMethod = '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources'

export interface DeltaStream {
  /** While the control plane leaves much unread, nothing more is read of it either: what waits for it is bounded. */
  send(request: DeltaRequest): void
  close(): void
  readonly ended: Promise<StreamEnd>
}

/** Opens a stream. `onResponse` is called for each response, in order. Rejects when roots or headers can't be had. */
export async function openDeltaStream(
  options: DeltaClientOptions,
  { connectTimeoutMs, unreadMs }: Pick<DeltaClientTimes, 'connectTimeoutMs' | 'unreadMs'>,
  onResponse: (response: discovery.DeltaDiscoveryResponse) => void,
): Promise<DeltaStream> {
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(await options.headers())) metadata.set(name, value)
  const channel = await channelCredentials(options, connectTimeoutMs)
  const client = new Client(options.address, channel, channelOptions(options))
  const ended = Promise.withResolvers<StreamEnd>()
  const call = client.makeBidiStreamRequest(
    deltaMethod,
    (request: DeltaRequest) => Buffer.from(toBinary(discovery.DeltaDiscoveryRequestSchema, request)),
    (bytes: Buffer) => fromBinary(discovery.DeltaDiscoveryResponseSchema, bytes),
    metadata,
  )
  let connected = false
  const timer = setTimeout(() => finish(notConnected(`no connection within ${connectTimeoutMs} ms`)), connectTimeoutMs)
  watchUntilReady(client, () => {
    connected = true
    clearTimeout(timer)
  })

  let isOver = false
  let unread: NodeJS.Timeout | undefined
  function send(request: DeltaRequest): void {
    if (isOver || call.write(request) || unread !== undefined) return
    call.pause()
    const details = `the control plane has left requests unread for ${unreadMs} ms`
    unread = setTimeout(() => finish({ kind: 'status', code: status.UNAVAILABLE, details }), unreadMs)
  }
  call.on('drain', () => {
    clearTimeout(unread)
    unread = undefined
    call.resume()
  })

  function finish(end: StreamEnd): void {
    isOver = true
    clearTimeout(timer)
    clearTimeout(unread)
    ended.resolve(end)
    call.cancel()
    client.close()
    if (channel instanceof AbandonableCredentials) channel.abandon()
  }

  call.on('data', onResponse)
  call.on('error', (error: ServiceError) => {
    finish(connected ? { kind: 'status', code: error.code, details: error.details } : { kind: 'not-connected', error })
  })
  call.on('end', () => finish({ kind: 'closed' }))
  return { send, close: () => finish({ kind: 'closed' }), ended: ended.promise }
}

function notConnected(message: string): StreamEnd {
  return { kind: 'not-connected', error: new Error(message) }
}

function watchUntilReady(client: Client, onReady: () => void): void {
  const channel = client.getChannel()
  const look = (): void => {
    const state = channel.getConnectivityState(false)
    if (state === connectivityState.READY) onReady()
    if (state === connectivityState.READY || state === connectivityState.SHUTDOWN) return
    channel.watchConnectivityState(state, Infinity, (error) => {
      if (!error) look()
    })
  }
  look()
}

async function channelCredentials(options: DeltaClientOptions, connectTimeoutMs: number) {
  if (options.transport.kind === 'plaintext') return credentials.createInsecure()
  const roots = Buffer.from(await options.transport.roots())
  const checkServerIdentity = acceptServerNames(options.transport.alternativeName)
  return new AbandonableCredentials(credentials.createSsl(roots, null, null, { checkServerIdentity }), connectTimeoutMs)
}

function channelOptions(options: DeltaClientOptions): ChannelOptions {
  const serverName = options.transport.kind === 'tls' ? options.transport.serverName : undefined
  return {
    'grpc.max_receive_message_length': 200 * 1024 * 1024,
    'grpc.keepalive_time_ms': 30_000,
    'grpc.keepalive_timeout_ms': 10_000,
    // Each stream has its own connection: a shared one would outlive rotated roots.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_http_proxy': 0,
    'grpc.enable_retries': 0,
    // The library keeps messages for retries that there are none of; beyond this a write lasts until it has left.
    'grpc.per_rpc_retry_buffer_size': 16 * 1024,
    'grpc.service_config_disable_resolution': 1,
    ...(serverName === undefined
      ? {}
      : { 'grpc.ssl_target_name_override': serverName, 'grpc.default_authority': serverName }),
  }
}
