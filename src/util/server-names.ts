// Under which names a TLS server is accepted.
import { checkServerIdentity, type PeerCertificate } from 'node:tls'

/** A check of a server's certificate that takes the name it was called by or, where one is given, the alternative. */
export function acceptServerNames(
  alternative: string | undefined,
): (name: string, certificate: PeerCertificate) => Error | undefined {
  return (name, certificate) => {
    const refusal = checkServerIdentity(name, certificate)
    if (refusal === undefined || alternative === undefined) return refusal
    return checkServerIdentity(alternative, certificate) === undefined ? undefined : refusal
  }
}
