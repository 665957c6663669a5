// Who signed a certificate.
import type { X509Certificate } from 'node:crypto'

/** By name, key identifier, right to sign certificates, and signature. Of times, and of whether the issuer is an authority, nothing is said. */
export function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  try {
    return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
  } catch {
    // A key that the library does not know, or a signature of another kind than the key's.
    return false
  }
}
