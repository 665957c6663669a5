// The CA's answer as a certificate ready to use.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { certificateBlocks } from '../../util/index.ts'
import type { WorkloadCertificate } from '../types.ts'
import { CertificateError } from './errors.ts'
import { uriNamesOf } from './subject-alt-names.ts'

export interface AnswerOptions {
  readonly identity: string
  readonly privateKeyPem: string
  /** Leaf first, roots last. */
  readonly chain: readonly string[]
  /** The leaf must carry exactly the identity. False where the CA decides the identity from the caller's token. */
  readonly checkIdentity: boolean
  /** Told of each root that is left out because it does not parse. */
  readonly warn?: (message: string) => void
}

/** Checks the answer and takes it apart. Throws a CertificateError with code CA_ANSWER. */
export function certificateFromAnswer(options: AnswerOptions): WorkloadCertificate {
  const { identity, privateKeyPem, chain } = options
  const [leafText, ...rest] = chain
  if (leafText === undefined)
    throw new CertificateError('CA_ANSWER', `chain returned from CA is empty for: ${identity}`)
  const rootsText = rest.at(-1)
  if (rootsText === undefined) {
    throw new CertificateError('CA_ANSWER', 'invalid root certificate: no root certificate present')
  }
  const [leaf, ...flattened] = parsed('certificate', leafText)
  if (leaf === undefined)
    throw new CertificateError('CA_ANSWER', 'invalid certificate: no certificate in the first entry')
  const intermediates = rest.slice(0, -1).flatMap((text) => parsed('intermediate certificate', text))
  if (options.checkIdentity) {
    const names = uriNamesOf(leaf)
    if (names.length !== 1 || names[0] !== identity) {
      throw new CertificateError('CA_ANSWER', `did not find expected SAN: ${identity}`)
    }
  }
  if (!leaf.checkPrivateKey(createPrivateKey(privateKeyPem))) {
    throw new CertificateError('CA_ANSWER', `the certificate for ${identity} is not for the key that was sent`)
  }
  return {
    privateKey: privateKeyPem,
    leaf: leaf.toString(),
    intermediates: [...flattened, ...intermediates].map((certificate) => certificate.toString()),
    roots: usableRoots(rootsText, options.warn),
    notBefore: leaf.validFromDate,
    notAfter: leaf.validToDate,
    serial: BigInt(`0x${leaf.serialNumber}`).toString(),
  }
}

function parsed(what: string, text: string): X509Certificate[] {
  try {
    return certificateBlocks(text).map((pem) => new X509Certificate(pem))
  } catch (cause) {
    throw new CertificateError('CA_ANSWER', `invalid ${what}: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    })
  }
}

function usableRoots(text: string, warn: ((message: string) => void) | undefined): string[] {
  const roots = certificateBlocks(text).flatMap((pem) => {
    try {
      return [new X509Certificate(pem).toString()]
    } catch (error) {
      warn?.(`left out a root certificate: ${error instanceof Error ? error.message : error}`)
      return []
    }
  })
  if (roots.length === 0) {
    throw new CertificateError('CA_ANSWER', 'invalid root certificate: no root certificate present')
  }
  return roots
}
