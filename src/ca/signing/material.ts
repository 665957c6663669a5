// What a CA signs with: certificate, key, the chain above it and the trust bundle, checked to fit together.
import { X509Certificate } from 'node:crypto'
import { certificateBlocks, covers, isSameBundle, mergeBundles, parseRevocationLists } from '../client/index.ts'
import { MaterialError } from './errors.ts'
import { certificatePem, publicKeyDer, type Signer } from './issue.ts'
import { type SigningKey, signingKeyFromPem } from './keys.ts'
import { x509 } from './x509.ts'

export interface MaterialPem {
  readonly certificate: string
  readonly key: string
  readonly roots: string
  /** Certificates from the signing one upward; empty where the signing certificate is itself the root. */
  readonly chain: string
  readonly crl?: string
}

export interface SigningMaterial extends Signer {
  /** Sent after each leaf, one PEM certificate an element. */
  readonly chain: readonly string[]
  /** One PEM text. */
  readonly rootBundle: string
  /** The earliest end of the signing certificate and its chain: nothing signed may outlive it. */
  readonly notAfter: Date
  /** When the first root of the bundle ends. */
  readonly rootNotAfter: Date
  readonly crl?: string
}

/** Reads and checks signing material. Throws a MaterialError. `at`: also refuse what is not valid at that time. */
export function signingMaterial(pem: MaterialPem, at?: Date): SigningMaterial {
  const key = signingKeyFromPem(pem.key)
  const certificate = parse('signing certificate', pem.certificate, certificateBlocks(pem.certificate)[0])
  checkSigner(certificate, key)
  const roots = certificateBlocks(pem.roots).map((block) => parse('root certificate', pem.roots, block))
  if (roots.length === 0) throw new MaterialError('INVALID', 'the root bundle holds no certificate')
  const given = certificateBlocks(pem.chain)
  const signerPem = certificatePem(certificate)
  const isRoot = roots.some((root) => certificatePem(root) === signerPem)
  const chain = given.length === 0 && isRoot ? [] : given.includes(signerPem) ? given : [signerPem, ...given]
  const path = pathToRoot([signerPem, ...given], roots.map(certificatePem))
  if (at !== undefined) checkDates(path, at)
  if (pem.crl !== undefined && pem.crl.trim() !== '') checkCrl(pem.crl, path, roots.map(certificatePem))
  return {
    certificate,
    key,
    chain,
    rootBundle: mergeBundles(pem.roots),
    rootNotAfter: new Date(Math.min(...roots.map(({ notAfter }) => notAfter.getTime()))),
    notAfter: new Date(Math.min(...path.map(({ validToDate }) => validToDate.getTime()))),
    ...(pem.crl !== undefined && pem.crl.trim() !== '' ? { crl: pem.crl } : {}),
  }
}

/** True when both send the same chain, the same roots and the same revocations. */
export function isSameMaterial(a: SigningMaterial, b: SigningMaterial): boolean {
  return (
    certificatePem(a.certificate) === certificatePem(b.certificate) &&
    a.chain.join('') === b.chain.join('') &&
    a.crl === b.crl &&
    isSameBundle(a.rootBundle, b.rootBundle)
  )
}

function parse(what: string, text: string, block: string | undefined): x509.X509Certificate {
  if (block === undefined)
    throw new MaterialError('INVALID', `the ${what} is no PEM certificate (${text.length} bytes)`)
  try {
    return new x509.X509Certificate(block)
  } catch (cause) {
    throw new MaterialError('INVALID', `the ${what} cannot be parsed`, { cause })
  }
}

function checkSigner(certificate: x509.X509Certificate, key: SigningKey): void {
  if (!publicKeyDer(key.privateKey).equals(Buffer.from(certificate.publicKey.rawData))) {
    throw new MaterialError('INVALID', 'the signing key does not match the signing certificate')
  }
  const usage = certificate.getExtension(x509.KeyUsagesExtension)
  const maySign = usage === null || (usage.usages & x509.KeyUsageFlags.keyCertSign) !== 0
  if (!certificate.getExtension(x509.BasicConstraintsExtension)?.ca || !maySign) {
    throw new MaterialError('INVALID', 'certificate is not authorized to sign other certificates')
  }
}

/** The certificates from the signing one up to the last one below a root, or the signing one alone where it is the root. */
function pathToRoot(chain: readonly string[], roots: readonly string[]): X509Certificate[] {
  const above = chain.map((pem) => new X509Certificate(pem))
  const anchors = roots.map((pem) => new X509Certificate(pem))
  const path: X509Certificate[] = []
  let current = above[0]
  while (current !== undefined && path.length <= above.length) {
    path.push(current)
    const here = current
    if (anchors.some((root) => isIssuedBy(here, root))) return path
    current = above.find((issuer) => !path.includes(issuer) && isIssuedBy(here, issuer))
  }
  throw new MaterialError('INVALID', 'the chain of the signing certificate does not lead to a root of the bundle')
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
}

function checkDates(path: readonly X509Certificate[], at: Date): void {
  for (const { validFromDate, validToDate, subject } of path) {
    if (validToDate <= at)
      throw new MaterialError('INVALID', `certificate ${subject} has expired on ${isoDate(validToDate)}`)
    if (validFromDate > at)
      throw new MaterialError('INVALID', `certificate ${subject} is valid from ${isoDate(validFromDate)}`)
  }
}

function isoDate(date: Date): string {
  return date.toISOString()
}

function checkCrl(crl: string, path: readonly X509Certificate[], roots: readonly string[]): void {
  let isCovering: boolean
  try {
    const lists = parseRevocationLists(Buffer.from(crl))
    isCovering = covers(
      lists,
      path,
      roots.map((pem) => new X509Certificate(pem)),
    )
  } catch (cause) {
    throw new MaterialError('INVALID', `the CRL cannot be read: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    })
  }
  if (!isCovering) throw new MaterialError('INVALID', 'the CRL does not cover every certificate of the chain')
}
