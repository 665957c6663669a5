// Certificate requests as they come in: parsed, their signature checked, their key of a kind we certify.
import { createPublicKey } from 'node:crypto'
import { pemBlocks } from '../client/index.ts'
import { SigningError } from './errors.ts'
import { type KeyKind, kindOf } from './keys.ts'
import { x509 } from './x509.ts'

export interface CheckedRequest {
  /** SubjectPublicKeyInfo, DER. */
  readonly publicKey: Uint8Array
  readonly commonName: string
  readonly request: x509.Pkcs10CertificateRequest
}

const longestPem = 64 * 1024

/** Throws a SigningError (CSR_ERROR) for anything but one well-formed request signed with its own key. */
export async function checkCertificateRequest(csrPem: string): Promise<CheckedRequest> {
  if (csrPem.length > longestPem) throw refusal(`larger than ${longestPem} bytes`)
  const blocks = pemBlocks(csrPem).filter(({ label }) => /^(NEW )?CERTIFICATE REQUEST$/.test(label))
  const [block] = blocks
  if (block === undefined || blocks.length > 1) throw refusal('expected one PEM CERTIFICATE REQUEST')
  let request: x509.Pkcs10CertificateRequest
  let kind: KeyKind
  try {
    request = new x509.Pkcs10CertificateRequest(Uint8Array.from(block.der))
    kind = kindOf(createPublicKey({ key: Buffer.from(request.publicKey.rawData), format: 'der', type: 'spki' }))
  } catch (cause) {
    throw refusal('cannot be parsed', cause)
  }
  checkKeyKind(kind)
  if (!(await isSignedByItsKey(request))) throw refusal('its signature does not match its key')
  return {
    publicKey: new Uint8Array(request.publicKey.rawData),
    commonName: request.subjectName.getField('CN')[0] ?? '',
    request,
  }
}

function checkKeyKind(kind: KeyKind): void {
  if (kind.kind === 'rsa' && (kind.bits < 2048 || kind.bits > 8192)) {
    throw refusal(`RSA keys of ${kind.bits} bits are not certified: expected 2048 to 8192`)
  }
  if (kind.kind === 'ec' && kind.curve === 'P-521')
    throw refusal('P-521 keys are not certified: expected P-256 or P-384')
}

async function isSignedByItsKey(request: x509.Pkcs10CertificateRequest): Promise<boolean> {
  try {
    return await request.verify()
  } catch {
    // An algorithm that does not go with the key.
    return false
  }
}

function refusal(why: string, cause?: unknown): SigningError {
  return new SigningError('CSR_ERROR', `invalid certificate request: ${why}`, { cause })
}
