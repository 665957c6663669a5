// The verified certificate of the other side, and the SPIFFE ids in it.
import type { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { splitSpiffe } from '../util/index.ts'

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
