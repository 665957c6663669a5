// Verifies the certificate chain of a control-plane client against the roots of the trust domain it claims.
import type { X509Certificate } from 'node:crypto'
import { spiffeOf, uriNamesOf } from '../client/index.ts'
import { AuthenticationError } from './authenticator.ts'

export interface ChainVerification {
  /** The roots of a trust domain; undefined for one that is not ours or federated. Asked each time, so that new roots count at once. */
  readonly rootsOf: (trustDomain: string) => readonly X509Certificate[] | undefined
  readonly now?: () => Date
}

const clientAuth = '1.3.6.1.5.5.7.3.2'
const longestChain = 8

/**
 * The verified chain from the leaf up to its root. `presented` is what the peer sent, leaf first. The leaf must carry exactly one URI
 * name, a SPIFFE identity. Throws an AuthenticationError.
 */
export function verifyClientChain(
  presented: readonly X509Certificate[],
  options: ChainVerification,
): X509Certificate[] {
  const { rootsOf, now = () => new Date() } = options
  const [leaf, ...others] = presented
  if (leaf === undefined) throw new AuthenticationError('no client certificate is presented')
  const uris = uriNamesOf(leaf)
  const identity = uris.length === 1 ? spiffeOf(uris[0] ?? '') : undefined
  if (identity === undefined) {
    throw new AuthenticationError(
      `the client certificate must carry exactly one SPIFFE identity, not ${uris.length} URIs`,
    )
  }
  const roots = rootsOf(identity.trustDomain)
  if (roots === undefined) throw new AuthenticationError(`no roots are known for trust domain ${identity.trustDomain}`)
  if (leaf.ca) throw new AuthenticationError('the client certificate is a CA certificate')
  if (leaf.keyUsage !== undefined && !leaf.keyUsage.includes(clientAuth)) {
    throw new AuthenticationError('the certificate may not be used by clients')
  }
  return pathTo(roots, leaf, others, now())
}

function pathTo(
  roots: readonly X509Certificate[],
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  at: Date,
): X509Certificate[] {
  const path: X509Certificate[] = []
  let current: X509Certificate | undefined = leaf
  while (current !== undefined && path.length < longestChain) {
    const here: X509Certificate = current
    if (here.validFromDate > at || here.validToDate <= at) {
      throw new AuthenticationError('a certificate of the client has expired or is not yet valid')
    }
    path.push(here)
    const root = roots.find((candidate) => isIssuedBy(here, candidate) && candidate.validToDate > at)
    if (root !== undefined) return [...path, root]
    current = others.find((candidate) => !path.includes(candidate) && isIssuedBy(here, candidate))
  }
  throw new AuthenticationError('the client certificate does not lead to a trusted root')
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
}
