// TLS of the gRPC port: our serving certificate, replaceable while it runs; a client certificate is optional and counts only when it verifies.
import { ServerCredentials } from '@grpc/grpc-js'
import type { ServingCertificate } from '../ca/index.ts'

export class ReloadableCredentials extends ServerCredentials {
  constructor(certificate: ServingCertificate) {
    // Not rejecting is what makes the certificate optional: grpc-js reports a peer certificate only for authorised sockets.
    super({ requestCert: true, rejectUnauthorized: false, minVersion: 'TLSv1.2' }, contextOf(certificate))
  }

  /** For connections from now on. */
  replace(certificate: ServingCertificate): void {
    this.updateSecureContextOptions(contextOf(certificate))
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other
  }
}

function contextOf({ privateKey, chain, roots }: ServingCertificate) {
  return { key: privateKey, cert: chain, ca: roots }
}
