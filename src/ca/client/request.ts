// The key and certificate request of a workload: P-256, empty subject, one critical SAN with the identity.
import { generateKeyPair, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { toPem } from '../../util/index.ts'
import { encode, encodeOid, tags } from './der.ts'

export interface CertificateRequest {
  readonly csrPem: string
  /** PKCS#8. */
  readonly privateKeyPem: string
}

const generate = promisify(generateKeyPair)

/** A new key and a request signed with it. */
export async function createCertificateRequest(identity: string): Promise<CertificateRequest> {
  const { publicKey, privateKey } = await generate('ec', { namedCurve: 'P-256' })
  const subjectAltName = encode(
    tags.sequence,
    encodeOid('2.5.29.17'),
    encode(tags.boolean, Buffer.from([0xff])),
    encode(tags.octetString, encode(tags.sequence, encode(0x86, Buffer.from(identity, 'latin1')))),
  )
  const extensionRequest = encode(
    tags.sequence,
    encodeOid('1.2.840.113549.1.9.14'),
    encode(tags.set, encode(tags.sequence, subjectAltName)),
  )
  const toBeSigned = encode(
    tags.sequence,
    encode(tags.integer, Buffer.from([0])),
    encode(tags.sequence),
    publicKey.export({ type: 'spki', format: 'der' }),
    encode(0xa0, extensionRequest),
  )
  const signature = sign('sha256', toBeSigned, privateKey)
  const request = encode(
    tags.sequence,
    toBeSigned,
    encode(tags.sequence, encodeOid('1.2.840.10045.4.3.2')),
    encode(tags.bitString, Buffer.from([0]), signature),
  )
  return {
    csrPem: toPem('CERTIFICATE REQUEST', request),
    privateKeyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}
