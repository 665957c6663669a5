// What a CA signs with: certificate, key, the chain above it and the trust bundle, checked to fit together.
import { X509Certificate } from 'node:crypto'
import { certificateBlocks, isIssuedBy, isSameBundle, mergeBundles, toPem } from '../../util/index.ts'
import { covers, parseRevocationLists } from '../client/index.ts'
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
  /** The earliest end of the signing certificate, its chain and the root above: nothing signed may outlive it. */
  readonly notAfter: Date
  /** When the first root of the bundle ends. */
  readonly rootNotAfter: Date
  readonly crl?: string
}

/** Reads and checks signing material. Throws a MaterialError. `at`: also refuse what is not valid at that time. */
export function signingMaterial(pem: MaterialPem, at?: Date): SigningMaterial {
  try {
    return checkedMaterial(pem, at)
  } catch (cause) {
    if (cause instanceof MaterialError) throw cause
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new MaterialError('INVALID', `the signing material cannot be read: ${why}`, { cause })
  }
}

function checkedMaterial(pem: MaterialPem, at: Date | undefined): SigningMaterial {
  const key = signingKeyFromPem(pem.key)
  const certificate = parse('signing certificate', pem.certificate, certificateBlocks(pem.certificate)[0])
  checkSigner(certificate, key)
  const roots = certificateBlocks(pem.roots).map((block) => parse('root certificate', pem.roots, block))
  if (roots.length === 0) throw new MaterialError('INVALID', 'the root bundle holds no certificate')
  const given = certificateBlocks(pem.chain)
  const signerPem = certificatePem(certificate)
  const isRoot = roots.some((root) => certificatePem(root) === signerPem)
  const { path, anchor } = pathToRoot([signerPem, ...given], roots.map(certificatePem), at)
  const inOrder = path.map((one) => toPem('CERTIFICATE', one.raw))
  const chain = given.length === 0 && isRoot ? [] : [...new Set([...inOrder, ...given])]
  checkPathLengths([...path, anchor])
  if (at !== undefined) checkDates([...path, anchor], at)
  if (pem.crl !== undefined && pem.crl.trim() !== '') checkCrl(pem.crl, path, roots.map(certificatePem))
  return {
    certificate,
    key,
    chain,
    rootBundle: mergeBundles(pem.roots),
    rootNotAfter: new Date(Math.min(...roots.map(({ notAfter }) => notAfter.getTime()))),
    notAfter: new Date(Math.min(...[...path, anchor].map(({ validToDate }) => validToDate.getTime()))),
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

function readable(what: string, pem: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch (cause) {
    throw new MaterialError('INVALID', `a ${what} cannot be parsed`, { cause })
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

interface PathToRoot {
  /** From the signing certificate up to the last one below a root, or the signing one alone where it is the root. */
  readonly path: readonly X509Certificate[]
  /** The root: of several that fit the one that lasts longest, those that are valid at the time first. */
  readonly anchor: X509Certificate
}

function pathToRoot(chain: readonly string[], roots: readonly string[], at: Date | undefined): PathToRoot {
  const above = chain.map((pem) => readable('certificate of the chain', pem))
  const anchors = roots.map((pem) => readable('root certificate', pem))
  const path: X509Certificate[] = []
  let current = above[0]
  while (current !== undefined && path.length <= above.length) {
    path.push(current)
    const here = current
    const fitting = anchors.filter((root) => isIssuedByAuthority(here, root))
    const usable = fitting.filter((root) => at === undefined || (root.validFromDate <= at && root.validToDate > at))
    const anchor = longestLasting(usable.length > 0 ? usable : fitting)
    if (anchor !== undefined) return { path, anchor }
    current = above.find((issuer) => !path.includes(issuer) && isIssuedByAuthority(here, issuer))
  }
  throw new MaterialError('INVALID', 'the chain of the signing certificate does not lead to a root of the bundle')
}

const isIssuedByAuthority = (certificate: X509Certificate, issuer: X509Certificate): boolean =>
  issuer.ca && isIssuedBy(certificate, issuer)

function longestLasting(roots: readonly X509Certificate[]): X509Certificate | undefined {
  return roots.toSorted((a, b) => b.validToDate.getTime() - a.validToDate.getTime())[0]
}

/** An authority may forbid others below it (RFC 5280, section 4.2.1.9): no client would accept what is signed there. */
function checkPathLengths(path: readonly X509Certificate[]): void {
  for (const [at, { raw, subject }] of path.entries()) {
    const below = path.slice(0, at).filter((one) => one.subject !== one.issuer).length
    const longest = new x509.X509Certificate(Uint8Array.from(raw)).getExtension(
      x509.BasicConstraintsExtension,
    )?.pathLength
    if (longest !== undefined && below > longest) {
      throw new MaterialError('INVALID', `certificate ${subject} allows ${longest} authorities below it, not ${below}`)
    }
  }
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
