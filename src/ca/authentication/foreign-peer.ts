// Clients of other trust domains: their chain must lead to a root of the very domain that they name, and to no other. The TLS layer trusts
// the roots of this mesh alone, so that what it says of these chains does not count; they are verified here, and narrowly.
import type { X509Certificate } from 'node:crypto'
import { isIssuedBy } from '../../util/index.ts'
import { spiffeOf, uriNamesOf } from '../client/index.ts'
import { x509 } from '../signing/x509.ts'
import { AuthenticationError, type AuthenticationRequest } from './authenticator.ts'
import { isMeshPeer } from './mesh-peer.ts'

/** The roots of another trust domain (in its canonical form); empty for one that nobody vouches for. */
export type ForeignRoots = (trustDomain: string) => readonly X509Certificate[]

/** Leaf and root included. */
const longestChain = 8
const leastRsaBits = 2048
const anyPurpose = '2.5.29.37.0'
const clientAuth = '1.3.6.1.5.5.7.3.2'
const hashes: ReadonlySet<string> = new Set(['SHA-256', 'SHA-384', 'SHA-512'])
const curves: ReadonlySet<string> = new Set(['prime256v1', 'secp384r1', 'secp521r1'])
/** What is looked at below. Of name constraints that means: whoever has them is refused. */
const understood: ReadonlySet<string> = new Set(['2.5.29.15', '2.5.29.17', '2.5.29.19', '2.5.29.37'])
const nameConstraints = '2.5.29.30'

/**
 * The chain from the leaf to a root of the leaf's own trust domain. `presented`: leaf first, as the client sent it, which has shown to hold the
 * leaf's key. Throws an AuthenticationError that says what is wrong.
 */
export function verifyForeignPeer(
  presented: readonly X509Certificate[],
  rootsOf: ForeignRoots,
  now = new Date(),
): readonly X509Certificate[] {
  const [leaf, ...others] = presented
  if (leaf === undefined) throw new AuthenticationError('no certificate is presented')
  const uris = uriNamesOf(leaf)
  const identity = uris.length === 1 ? spiffeOf(uris[0] ?? '') : undefined
  if (identity === undefined) throw new AuthenticationError('the certificate does not name one workload')
  const roots = rootsOf(identity.trustDomain)
  if (roots.length === 0) throw new AuthenticationError(`no roots are known for trust domain ${identity.trustDomain}`)
  if (leaf.ca) throw new AuthenticationError('the certificate of the client is an authority')
  const chain = [leaf]
  for (let last = leaf; ; ) {
    const issuers = roots.filter((one) => isIssuedBy(last, one))
    const root =
      issuers.find(({ validFromDate, validToDate }) => validFromDate <= now && now <= validToDate) ?? issuers[0]
    if (root !== undefined) {
      const whole = [...chain, root]
      whole.forEach((certificate, at) => {
        checkCertificate(certificate, at, at === whole.length - 1, now)
      })
      return whole
    }
    const issuer = others.find((one) => !chain.includes(one) && isIssuedBy(last, one))
    if (issuer === undefined || chain.length >= longestChain - 1) {
      throw new AuthenticationError(`the chain does not lead to a root of trust domain ${identity.trustDomain}`)
    }
    chain.push(issuer)
    last = issuer
  }
}

/**
 * What is asked about a caller on a connection on which a certificate of another trust domain may have been shown. `own`: the trust domains of
 * this mesh, whose certificates the TLS layer judges.
 */
export function withForeignPeer(
  request: AuthenticationRequest,
  presented: readonly X509Certificate[],
  own: readonly string[],
  rootsOf: ForeignRoots,
): AuthenticationRequest {
  const [leaf] = presented
  if (leaf === undefined || isMeshPeer(leaf, own)) return request
  try {
    return { ...request, peerAuthentication: { kind: 'tls', verifiedChains: [verifyForeignPeer(presented, rootsOf)] } }
  } catch (error) {
    if (!(error instanceof AuthenticationError)) throw error
    return { ...request, peerAuthentication: { kind: 'tls', verifiedChains: [], unverified: error.message } }
  }
}

/** `at`: how many certificates are below it. */
function checkCertificate(certificate: X509Certificate, at: number, isRoot: boolean, now: Date): void {
  const isLeaf = at === 0
  const refuse = (why: string): never => {
    const which = isLeaf ? 'the certificate of the client' : `the authority ${oneLine(certificate.subject)}`
    throw new AuthenticationError(`${which} ${why}`)
  }
  if (certificate.validFromDate > now) refuse('is not valid yet')
  if (certificate.validToDate < now) refuse('has expired')
  checkKey(certificate, refuse)
  const parsed = new x509.X509Certificate(certificate.raw)
  // A root is trusted as it is, not for its own signature.
  if (!isRoot && !isSoundlySigned(parsed)) refuse('is signed with a weak or unknown hash')
  for (const { type, critical } of parsed.extensions) {
    if (type === nameConstraints) refuse('has name constraints, which are not judged for other trust domains')
    if (critical && !understood.has(type)) refuse(`has a critical extension that is not understood: ${type}`)
  }
  const purposes = parsed.getExtension(x509.ExtendedKeyUsageExtension)?.usages
  if (purposes !== undefined && !purposes.some((one) => one === clientAuth || one === anyPurpose)) {
    refuse('is not for clients')
  }
  const usages = parsed.getExtension(x509.KeyUsagesExtension)?.usages
  const constraints = parsed.getExtension(x509.BasicConstraintsExtension)
  if (isLeaf) {
    if (usages !== undefined && (usages & x509.KeyUsageFlags.digitalSignature) === 0) refuse('is not for signatures')
    return
  }
  if (constraints?.ca !== true) refuse('is no authority')
  if (usages !== undefined && (usages & x509.KeyUsageFlags.keyCertSign) === 0) refuse('may not sign certificates')
  if (constraints?.pathLength !== undefined && at - 1 > constraints.pathLength) {
    refuse('may not have so many authorities below it')
  }
}

function checkKey({ publicKey }: X509Certificate, refuse: (why: string) => never): void {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = publicKey
  if (type === 'rsa' || type === 'rsa-pss') {
    if ((details?.modulusLength ?? 0) < leastRsaBits) refuse(`has a key of less than ${leastRsaBits} bits`)
  } else if (type === 'ec') {
    if (!curves.has(details?.namedCurve ?? '')) refuse('has a key of a curve that is not taken')
  } else if (type !== 'ed25519') {
    refuse('has a key of a kind that is not taken')
  }
}

function isSoundlySigned({ signatureAlgorithm }: x509.X509Certificate): boolean {
  const { name, hash } = signatureAlgorithm as { readonly name: string; readonly hash?: { readonly name: string } }
  return name === 'Ed25519' || hashes.has(hash?.name ?? '')
}

const oneLine = (name: string): string => name.replaceAll('\n', ', ')
