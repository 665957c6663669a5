// The gRPC ports: xDS and the certificate service over TLS, and xDS without TLS where that is asked for.
import { Server, ServerCredentials } from '@grpc/grpc-js'
import type { Scope } from '../observability/index.ts'
import { splitAddress } from './http-server.ts'
import { ReloadableCredentials } from './server-credentials.ts'
import type { FollowedServingCertificate } from './serving-certificate.ts'
import type { DiscoverySettings } from './settings.ts'

export interface GrpcServer {
  readonly port: number
  /** Lets calls under way end for the given time, then ends them. */
  close(graceMs: number): Promise<void>
}

type Settings = Pick<
  DiscoverySettings,
  | 'maxReceiveBytes'
  | 'maxConcurrentStreams'
  | 'keepaliveMs'
  | 'keepaliveTimeoutMs'
  | 'maxConnectionAgeMs'
  | 'serving'
  | 'secureGrpcAddress'
  | 'plainGrpcAddress'
>

const latecomersMs = 200

/** Listens with the serving certificate, and with each that follows it. */
export async function serveGrpc(
  settings: Settings,
  certificate: FollowedServingCertificate,
  addServices: (server: Server) => void,
  log: Scope,
): Promise<GrpcServer> {
  const credentials = new ReloadableCredentials(certificate.current, settings.serving)
  certificate.subscribe((next) => credentials.replace(next))
  const server = await listen(settings, settings.secureGrpcAddress, credentials, addServices)
  log.info('serving xDS and certificates', { port: server.port })
  return server
}

/** Listens without TLS. */
export async function servePlainGrpc(
  settings: Settings,
  addServices: (server: Server) => void,
  log: Scope,
): Promise<GrpcServer> {
  const credentials = ServerCredentials.createInsecure()
  const server = await listen(settings, settings.plainGrpcAddress, credentials, addServices)
  log.warn('serving xDS without TLS: whoever reaches this port reads the configuration', { port: server.port })
  return server
}

async function listen(
  settings: Settings,
  address: string,
  credentials: ServerCredentials,
  addServices: (server: Server) => void,
): Promise<GrpcServer> {
  const server = new Server({
    'grpc.max_receive_message_length': settings.maxReceiveBytes,
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': settings.maxConcurrentStreams,
    'grpc.keepalive_time_ms': settings.keepaliveMs,
    'grpc.keepalive_timeout_ms': settings.keepaliveTimeoutMs,
    ...(settings.maxConnectionAgeMs === undefined
      ? {}
      : { 'grpc.max_connection_age_ms': settings.maxConnectionAgeMs, 'grpc.max_connection_age_grace_ms': 10_000 }),
  })
  addServices(server)
  const { host, port } = splitAddress(address)
  const bindTo = `${host === '' ? '[::]' : host.includes(':') ? `[${host}]` : host}:${port}`
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(bindTo, credentials, (error, at) => (error === null ? resolve(at) : reject(error)))
  })
  return {
    port: bound,
    close: (graceMs) =>
      new Promise((resolve) => {
        const force = setTimeout(() => {
          server.forceShutdown()
          end()
        }, graceMs)
        // Whoever was still shaking hands when the others were told to leave is told then.
        const again = setInterval(() => server.tryShutdown(() => {}), latecomersMs)
        const end = (): void => {
          clearTimeout(force)
          clearInterval(again)
          resolve()
        }
        server.tryShutdown(end)
      }),
  }
}
