// Which verified client certificates speak for a workload of the mesh.
import type { X509Certificate } from 'node:crypto'
import { canonicalTrustDomain, spiffeOf, uriNamesOf } from '../client/index.ts'

/**
 * True for a leaf with exactly one URI name, a SPIFFE identity of one of the trust domains. A root may
 * be shared with others, whose certificates name no workload of this mesh.
 */
export function isMeshPeer(leaf: X509Certificate, trustDomains: readonly string[]): boolean {
  const uris = uriNamesOf(leaf)
  const identity = uris.length === 1 ? spiffeOf(uris[0] ?? '') : undefined
  return identity !== undefined && trustDomains.map(canonicalTrustDomain).includes(identity.trustDomain)
}
