// The gRPC port: xDS and the certificate service over TLS.
import { Server } from '@grpc/grpc-js'
import { type SelfAuthority, servingNames } from '../ca/index.ts'
import type { Scope } from '../observability/index.ts'
import { splitAddress } from './http-server.ts'
import { ReloadableCredentials } from './server-credentials.ts'
import type { DiscoverySettings } from './settings.ts'

export interface GrpcServer {
  readonly port: number
  /** Lets calls under way end for the given time, then ends them. */
  close(graceMs: number): Promise<void>
}

const servingTtlSeconds = 3650 * 86_400

/** Listens with a certificate of our own CA, issued anew when the CA changes. */
export async function serveGrpc(
  settings: DiscoverySettings,
  authority: SelfAuthority,
  discoveryAddress: string,
  addServices: (server: Server) => void,
  log: Scope,
): Promise<GrpcServer> {
  const names = servingNames({
    namespace: settings.namespace,
    discoveryAddress,
    customHosts: settings.customHosts,
    revision: settings.revision,
  })
  const issue = () => authority.issueServingCertificate(names, servingTtlSeconds)
  const credentials = new ReloadableCredentials(await issue())
  const unsubscribe = authority.subscribe(() => {
    issue().then(
      (certificate) => credentials.replace(certificate),
      (error: unknown) => log.error('the serving certificate could not be renewed', { reason: String(error) }),
    )
  })
  const server = new Server({
    'grpc.max_receive_message_length': settings.maxReceiveBytes,
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': 100_000,
    'grpc.keepalive_time_ms': settings.keepaliveMs,
    'grpc.keepalive_timeout_ms': settings.keepaliveTimeoutMs,
    ...(settings.maxConnectionAgeMs === undefined
      ? {}
      : { 'grpc.max_connection_age_ms': settings.maxConnectionAgeMs, 'grpc.max_connection_age_grace_ms': 10_000 }),
  })
  addServices(server)
  const { host, port } = splitAddress(settings.secureGrpcAddress)
  const bindTo = `${host === '' ? '[::]' : host.includes(':') ? `[${host}]` : host}:${port}`
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(bindTo, credentials, (error, at) => (error === null ? resolve(at) : reject(error)))
  })
  log.info('serving xDS and certificates', { port: bound, names: names.join(' ') })
  return {
    port: bound,
    async close(graceMs) {
      unsubscribe()
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => {
          server.forceShutdown()
          resolve()
        }, graceMs)
        server.tryShutdown(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    },
  }
}
