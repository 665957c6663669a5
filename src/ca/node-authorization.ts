// May this node proxy have the certificate of that workload? Only if the workload runs on the proxy's own node.
import { buildSpiffe, canonicalTrustDomain, parseSpiffe, type SpiffeIdentity } from './client/index.ts'
import type { PodLookup, PodView } from './pod-index.ts'
import type { Caller } from './types.ts'

export interface ImpersonationRequest {
  /** The caller's token, as reviewed. */
  readonly caller: NonNullable<Caller['kubernetes']>
  /** The SPIFFE identity asked for. */
  readonly requested: string
}

export interface NodeAuthorizerOptions {
  /** `namespace/serviceaccount` of the node proxies. */
  readonly trustedAccounts: ReadonlySet<string>
  /** The mesh's trust domain and its aliases. */
  readonly trustDomains: () => readonly string[]
  readonly pods: PodLookup
}

export class ImpersonationError extends Error {
  readonly code = 'IMPERSONATION_REFUSED'
}

/** Returns normally when the identity may be given to the caller; throws an ImpersonationError otherwise. */
export type AuthorizeImpersonation = (request: ImpersonationRequest) => void

export function createNodeAuthorizer({
  trustedAccounts,
  trustDomains,
  pods,
}: NodeAuthorizerOptions): AuthorizeImpersonation {
  return ({ caller, requested }) => {
    const account = `${caller.namespace}/${caller.serviceAccount}`
    if (!trustedAccounts.has(account)) {
      throw new ImpersonationError(`caller (${account}) is not allowed to impersonate`)
    }
    const identity = requestedIdentity(requested)
    if (!trustDomains().map(canonicalTrustDomain).includes(identity.trustDomain)) {
      throw new ImpersonationError(`trust domain ${identity.trustDomain} of ${requested} is not the mesh's`)
    }
    const node = nodeOfCaller(pods, caller)
    for (const pod of pods.on(node, identity.namespace, identity.serviceAccount)) {
      if (!hasEnded(pod)) return
    }
    throw new ImpersonationError(
      `no instances of ${identity.namespace}/${identity.serviceAccount} found on node ${node}`,
    )
  }
}

function requestedIdentity(requested: string): SpiffeIdentity {
  try {
    const identity = parseSpiffe(requested)
    buildSpiffe(identity)
    return identity
  } catch (cause) {
    throw new ImpersonationError(
      `failed to validate impersonated identity ${requested}: ${cause instanceof Error ? cause.message : cause}`,
      { cause },
    )
  }
}

function nodeOfCaller(pods: PodLookup, caller: ImpersonationRequest['caller']): string {
  const { podName, podUid, namespace, serviceAccount } = caller
  if (podName === undefined || podUid === undefined || podUid === '') {
    throw new ImpersonationError('the token of the caller is not bound to a pod')
  }
  const pod = pods.get(namespace, podName)
  if (pod === undefined) throw new ImpersonationError(`pod ${namespace}/${podName} not found`)
  if (pod.uid !== podUid) throw new ImpersonationError('pod found, but UID does not match')
  if (pod.serviceAccount !== serviceAccount) {
    throw new ImpersonationError('pod found, but ServiceAccount does not match')
  }
  if (hasEnded(pod)) throw new ImpersonationError(`pod ${namespace}/${podName} has ended`)
  if (pod.node === '') throw new ImpersonationError(`pod ${namespace}/${podName} is not scheduled`)
  return pod.node
}

/** Nothing of a pod that has ended needs a certificate. */
function hasEnded({ phase }: PodView): boolean {
  return phase === 'Failed' || phase === 'Succeeded'
}

/** Parses a comma list of `namespace/serviceaccount`; other entries are left out and told of. */
export function parseTrustedAccounts(text: string, warn?: (message: string) => void): ReadonlySet<string> {
  const accounts = new Set<string>()
  for (const entry of text.split(',').map((part) => part.trim())) {
    if (entry === '') continue
    if (/^[^/\s]+\/[^/\s]+$/.test(entry)) accounts.add(entry)
    else warn?.(`trusted node account '${entry}' ignored: expected namespace/serviceaccount`)
  }
  return accounts
}
