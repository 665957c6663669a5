// TLS of the gRPC port: our serving certificate, replaceable while it runs; a client certificate is optional and counts only when it verifies.
import { ServerCredentials } from '@grpc/grpc-js'
import type { ServingCertificate } from '../ca/index.ts'
import { opensslNames } from './cipher-suites.ts'
import type { ServingFiles } from './settings.ts'

export type TlsOffer = Pick<ServingFiles, 'minVersion' | 'cipherSuites'>

export class ReloadableCredentials extends ServerCredentials {
  readonly #offer: TlsOffer

  constructor(certificate: ServingCertificate, offer: TlsOffer) {
    // Not rejecting is what makes the certificate optional: grpc-js reports a peer certificate only for authorised sockets.
    super({ requestCert: true, rejectUnauthorized: false, minVersion: offer.minVersion }, contextOf(certificate, offer))
    this.#offer = offer
  }

  /** For connections from now on. */
  replace(certificate: ServingCertificate): void {
    this.updateSecureContextOptions(contextOf(certificate, this.#offer))
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other
  }
}

function contextOf({ privateKey, chain, roots }: ServingCertificate, { minVersion, cipherSuites }: TlsOffer) {
  const ciphers = cipherSuites.map((suite) => opensslNames[suite] ?? suite)
  return {
    key: privateKey,
    cert: chain,
    ca: roots,
    minVersion,
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
