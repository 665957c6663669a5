// The verified certificate of the other side, and the SPIFFE ids in it.
import type { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { isIssuedBy, parseCertificates, splitSpiffe } from '../util/index.ts'
import type { TlsCredentials } from './types.ts'

export interface PeerCertificate {
  /** URI names with the spiffe scheme, in certificate order. */
  readonly spiffeIds: readonly string[]
  /** Leaf first, up to the root that verified it, as far as it is known. */
  readonly chain: readonly X509Certificate[]
}

/** One subject alternative name as Node prints it: quoted when it holds a separator. */
const name = /(?:^|, )([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^",]*)/g

/** The spiffe:// URIs of a certificate. */
export function spiffeIdsOf(certificate: X509Certificate): string[] {
  const text = certificate.subjectAltName ?? ''
  return [...text.matchAll(name)]
    .filter(([, kind, value]) => kind === 'URI' && value?.startsWith('spiffe://') === true)
    .map(([, , value]) => value ?? '')
}

/** The peer of a handshake that has finished; undefined when it gave no certificate. */
export function peerOf(socket: TLSSocket): PeerCertificate | undefined {
  const leaf = socket.getPeerX509Certificate()
  if (leaf === undefined) return undefined
  const chain: X509Certificate[] = []
  let next: X509Certificate | undefined = leaf
  while (next !== undefined && chain.length < 16) {
    chain.push(next)
    // Of a root it is undefined.
    next = next.issuerCertificate
  }
  return { spiffeIds: spiffeIdsOf(leaf), chain }
}

/**
 * The chain that a peer sent, from its leaf to one of the roots; undefined when it is not one of which each certificate is signed by the
 * next: TLS has then verified another way to a root, of which nothing is known.
 */
export function wholeChainOf(
  sent: readonly X509Certificate[],
  { roots }: Pick<TlsCredentials, 'roots'>,
): readonly X509Certificate[] | undefined {
  const anchors = rootsOf(roots)
  const end = sent.findIndex((one) => anchors.some((root) => root.raw.equals(one.raw)))
  const below = end === -1 ? sent : sent.slice(0, end)
  const last = below.at(-1)
  const root = anchors.find((one) => last !== undefined && isIssuedBy(last, one))
  if (root === undefined) return undefined
  const chain = [...below, root]
  return chain.every((one, at) => at === 0 || isIssuedBy(chain[at - 1] ?? one, one)) ? chain : undefined
}

let parsedRoots: { readonly text: string; readonly roots: readonly X509Certificate[] } | undefined

/** All pods of a proxy have the same roots, and seldom others: parsing them each time would cost more than the rest. */
function rootsOf(text: string): readonly X509Certificate[] {
  if (parsedRoots?.text !== text) parsedRoots = { text, roots: parseCertificates(text) }
  return parsedRoots.roots
}

/** Accepts a peer with at least one of these ids, compared exactly. An empty list accepts nobody. */
export function expectOneOf(expected: readonly string[]): (peer: PeerCertificate) => string | undefined {
  return ({ spiffeIds }) =>
    spiffeIds.some((id) => expected.includes(id))
      ? undefined
      : `identity verification error: peer did not present the expected SAN (${expected.join(',')}), got ${spiffeIds.join(',')}`
}

/** Accepts a peer with the SPIFFE id of a workload of this trust domain. An id of another form names nobody that policies could judge. */
export function expectTrustDomain(trustDomain: string): (peer: PeerCertificate) => string | undefined {
  return ({ spiffeIds }) =>
    spiffeIds.some((id) => splitSpiffe(id)?.trustDomain === trustDomain)
      ? undefined
      : `identity verification error: peer did not present the expected trustdomain (${trustDomain}), got ${spiffeIds.join(',')}`
}
