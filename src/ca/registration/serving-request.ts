// The key and request of a server's certificate, for a signer that certifies DNS names.
import { KeyObject, webcrypto } from 'node:crypto'
import { privateKeyPem } from '../signing/generate-key.ts'
import { x509 } from '../signing/x509.ts'

export interface ServingRequest {
  readonly csrPem: string
  /** PKCS#8. */
  readonly privateKey: string
}

/** A new P-256 key, and a request for these names signed with it. */
export async function createServingRequest(names: readonly string[]): Promise<ServingRequest> {
  const keys = await webcrypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify'])
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    keys,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    extensions: [new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns', value })))],
  })
  return {
    csrPem: `${request.toString('pem').trimEnd()}\n`,
    privateKey: privateKeyPem(KeyObject.from(keys.privateKey)),
  }
}
