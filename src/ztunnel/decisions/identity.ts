// Workload identities and their SPIFFE ids.
import { canonicalTrustDomain, splitSpiffe } from '../../util/index.ts'
import type { Identity, Workload } from '../model.ts'

/** The identity a workload proves with its certificate. */
export function identityOf(workload: Workload): Identity {
  const { namespace, serviceAccount } = workload
  return { trustDomain: canonicalTrustDomain(workload.trustDomain), namespace, serviceAccount }
}

/** `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`. */
export const spiffeId = (identity: Identity): string => `spiffe://${principal(identity)}`

/** The SPIFFE id without its scheme, as policies write it. */
export function principal(identity: Identity): string {
  return `${identity.trustDomain}/ns/${identity.namespace}/sa/${identity.serviceAccount}`
}

/** Reads a SPIFFE id of the form above; anything else is undefined. */
export const parseSpiffeId = (text: string): Identity | undefined => splitSpiffe(text)

export function sameIdentity(a: Identity, b: Identity): boolean {
  return a.trustDomain === b.trustDomain && a.namespace === b.namespace && a.serviceAccount === b.serviceAccount
}
