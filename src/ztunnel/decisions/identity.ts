// Workload identities and their SPIFFE ids.
import type { Identity, Workload } from '../model.ts'

/** The identity a workload proves with its certificate. */
export function identityOf(workload: Workload): Identity {
  return { trustDomain: workload.trustDomain, namespace: workload.namespace, serviceAccount: workload.serviceAccount }
}

/** `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`. */
export const spiffeId = (identity: Identity): string => `spiffe://${principal(identity)}`

/** The SPIFFE id without its scheme, as policies write it. */
export function principal(identity: Identity): string {
  return `${identity.trustDomain}/ns/${identity.namespace}/sa/${identity.serviceAccount}`
}

/** Reads a SPIFFE id of the form above; anything else is undefined. */
export function parseSpiffeId(text: string): Identity | undefined {
  if (!text.startsWith('spiffe://')) return undefined
  const parts = text.slice('spiffe://'.length).split('/')
  const [trustDomain, ns, namespace, sa, serviceAccount] = parts
  if (parts.length !== 5 || ns !== 'ns' || sa !== 'sa') return undefined
  if (trustDomain === undefined || namespace === undefined || serviceAccount === undefined) return undefined
  return { trustDomain, namespace, serviceAccount }
}

export function sameIdentity(a: Identity, b: Identity): boolean {
  return a.trustDomain === b.trustDomain && a.namespace === b.namespace && a.serviceAccount === b.serviceAccount
}
