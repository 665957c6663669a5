// Certificate requests as they come in: parsed, their signature checked, their key of a kind we certify.
import { createPublicKey, type KeyObject } from 'node:crypto'
import { pemBlocks } from '../../util/index.ts'
import { type SignedStructure, signedStructure } from '../client/signature.ts'
import { SigningError } from './errors.ts'
import { type KeyKind, kindOf } from './keys.ts'
import { x509 } from './x509.ts'

export interface CheckedRequest {
  /** SubjectPublicKeyInfo, DER, in the one encoding that every client reads. */
  readonly publicKey: Uint8Array
  readonly commonName: string
  readonly request: x509.Pkcs10CertificateRequest
}

const longestPem = 64 * 1024

/** Throws a SigningError (CSR_ERROR) for anything but one well-formed request signed with its own key. */
export function checkCertificateRequest(csrPem: string): CheckedRequest {
  if (csrPem.length > longestPem) throw refusal(`larger than ${longestPem} bytes`)
  const blocks = pemBlocks(csrPem).filter(({ label }) => /^(NEW )?CERTIFICATE REQUEST$/.test(label))
  const [block] = blocks
  if (block === undefined || blocks.length > 1) throw refusal('expected one PEM CERTIFICATE REQUEST')
  const { signed, request, key, kind, commonName } = parse(block.der)
  checkKeyKind(kind, key)
  if (!signed.isSignedBy(key)) throw refusal('its signature does not match its key')
  return { publicKey: canonical(key), commonName, request }
}

interface ParsedRequest {
  readonly signed: SignedStructure
  readonly request: x509.Pkcs10CertificateRequest
  readonly key: KeyObject
  readonly kind: KeyKind
  readonly commonName: string
}

function parse(der: Buffer): ParsedRequest {
  try {
    const signed = signedStructure(der)
    const request = new x509.Pkcs10CertificateRequest(Uint8Array.from(der))
    const key = createPublicKey({ key: Buffer.from(request.publicKey.rawData), format: 'der', type: 'spki' })
    return { signed, request, key, kind: kindOf(key), commonName: request.subjectName.getField('CN')[0] ?? '' }
  } catch (cause) {
    throw refusal('cannot be parsed', cause)
  }
}

/** Requests may name the curve by its parameters, or compress the point: what goes into a certificate does neither. */
function canonical(key: KeyObject): Uint8Array {
  return createPublicKey({ key: key.export({ format: 'jwk' }), format: 'jwk' }).export({ type: 'spki', format: 'der' })
}

function checkKeyKind(kind: KeyKind, key: KeyObject): void {
  const exponent = key.asymmetricKeyDetails?.publicExponent
  if (exponent !== undefined && (exponent < 3n || exponent % 2n === 0n)) {
    throw refusal(`RSA keys with the exponent ${exponent} are not certified`)
  }
  if (kind.kind === 'rsa' && (kind.bits < 2048 || kind.bits > 8192)) {
    throw refusal(`RSA keys of ${kind.bits} bits are not certified: expected 2048 to 8192`)
  }
  if (kind.kind === 'ec' && kind.curve === 'P-521')
    throw refusal('P-521 keys are not certified: expected P-256 or P-384')
}

function refusal(why: string, cause?: unknown): SigningError {
  return new SigningError('CSR_ERROR', `invalid certificate request: ${why}`, { cause })
}
