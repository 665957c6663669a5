// The gRPC ports: xDS and the certificate service over TLS, and xDS without TLS where that is asked for.
import { constants } from 'node:crypto'
import type { Server } from '@grpc/grpc-js'
import type { ServingCertificate } from '../ca/index.ts'
import { type GrpcConnections, type GrpcPort, openGrpcPort, type TlsOffer } from '../grpc/server/index.ts'
import type { Scope } from '../observability/index.ts'
import { opensslNames } from './cipher-suites.ts'
import { splitAddress } from './http-server.ts'
import type { FollowedServingCertificate } from './serving-certificate.ts'
import type { DiscoverySettings, ServingFiles } from './settings.ts'

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

export interface GrpcServing {
  readonly settings: Settings
  readonly connections: GrpcConnections
  readonly log: Scope
}

/** Listens with the serving certificate, and with each that follows it. */
export async function serveGrpc(
  serving: GrpcServing,
  addServices: (server: Server) => void,
  certificate: FollowedServingCertificate,
): Promise<GrpcPort> {
  const { settings, log } = serving
  const offerOf = (one: ServingCertificate): TlsOffer => tlsOffer(one, settings.serving)
  const port = await listen(serving, settings.secureGrpcAddress, offerOf(certificate.current), addServices)
  certificate.subscribe((next) => port.offer(offerOf(next)))
  log.info('serving xDS and certificates', { port: port.port })
  return port
}

/** Listens without TLS. */
export async function servePlainGrpc(serving: GrpcServing, addServices: (server: Server) => void): Promise<GrpcPort> {
  const port = await listen(serving, serving.settings.plainGrpcAddress, undefined, addServices)
  serving.log.warn('serving xDS without TLS: whoever reaches this port reads the configuration', { port: port.port })
  return port
}

function listen(
  { settings, connections }: GrpcServing,
  address: string,
  tls: TlsOffer | undefined,
  addServices: (server: Server) => void,
): Promise<GrpcPort> {
  return openGrpcPort({
    ...splitAddress(address),
    tls,
    connections,
    addServices,
    channel: {
      'grpc.max_receive_message_length': settings.maxReceiveBytes,
      'grpc.max_send_message_length': -1,
      'grpc.max_concurrent_streams': settings.maxConcurrentStreams,
      'grpc.keepalive_time_ms': settings.keepaliveMs,
      'grpc.keepalive_timeout_ms': settings.keepaliveTimeoutMs,
      ...(settings.maxConnectionAgeMs === undefined
        ? {}
        : { 'grpc.max_connection_age_ms': settings.maxConnectionAgeMs, 'grpc.max_connection_age_grace_ms': 10_000 }),
    },
  })
}

function tlsOffer(
  { privateKey, chain, roots }: ServingCertificate,
  { minVersion, cipherSuites }: Pick<ServingFiles, 'minVersion' | 'cipherSuites'>,
): TlsOffer {
  const ciphers = cipherSuites.map((suite) => opensslNames[suite] ?? suite)
  return {
    key: privateKey,
    cert: chain,
    ca: roots,
    minVersion,
    // Of a resumed session a client's chain would not be verified again, nor be known.
    secureOptions: constants.SSL_OP_NO_TICKET,
    // Those of TLS 1.3 are not up for choice.
    ...(ciphers.length === 0
      ? {}
      : {
          ciphers: [
            'TLS_AES_256_GCM_SHA384',
            'TLS_CHACHA20_POLY1305_SHA256',
            'TLS_AES_128_GCM_SHA256',
            ...ciphers,
          ].join(':'),
        }),
  }
}
