// SPIFFE identities of workloads: `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`.

export interface SpiffeIdentity {
  readonly trustDomain: string
  readonly namespace: string
  readonly serviceAccount: string
}

export class SpiffeError extends Error {
  readonly code = 'INVALID_SPIFFE_ID'
}

const scheme = 'spiffe://'

/** The identity in parts; undefined for another shape. Empty parts are let through: build it again before trusting it. */
export function splitSpiffe(text: string): SpiffeIdentity | undefined {
  const parts = text.startsWith(scheme) ? text.slice(scheme.length).split('/') : []
  const [trustDomain, ns, namespace, sa, serviceAccount] = parts
  if (parts.length !== 5 || ns !== 'ns' || sa !== 'sa') return undefined
  if (trustDomain === undefined || namespace === undefined || serviceAccount === undefined) return undefined
  return { trustDomain, namespace, serviceAccount }
}

/** As splitSpiffe, but throws a SpiffeError for another shape. */
export function parseSpiffe(text: string): SpiffeIdentity {
  const identity = splitSpiffe(text)
  if (identity !== undefined) return identity
  throw new SpiffeError(
    `invalid SPIFFE identity '${text}': expected spiffe://<trust domain>/ns/<namespace>/sa/<service account>`,
  )
}

/** As parseSpiffe, but undefined for what is no complete identity. */
export function spiffeOf(text: string): SpiffeIdentity | undefined {
  try {
    const identity = parseSpiffe(text)
    buildSpiffe(identity)
    return identity
  } catch {
    return undefined
  }
}

/** The identity as text; throws a SpiffeError when a part is empty or would change the shape of the text. */
export function buildSpiffe({ trustDomain, namespace, serviceAccount }: SpiffeIdentity): string {
  if (namespace === '' || serviceAccount === '') {
    throw new SpiffeError('namespace or service account empty for SPIFFE uri')
  }
  const domain = canonicalTrustDomain(trustDomain)
  for (const part of [domain, namespace, serviceAccount]) {
    if (part === '' || /[/\s,?#%]/.test(part)) {
      throw new SpiffeError(`invalid part '${part}' of a SPIFFE identity: expected a name without '/', ',' or blanks`)
    }
  }
  return `${scheme}${domain}/ns/${namespace}/sa/${serviceAccount}`
}

/** `@` of cloud accounts is not allowed in a trust domain; it becomes a dot. */
export function canonicalTrustDomain(trustDomain: string): string {
  return trustDomain.replaceAll('@', '.')
}

/** The identities and, for those of the mesh's shape, the same workload in each alias domain. Order kept, each once. */
export function expandWithAliases(identities: readonly string[], aliases: readonly string[]): string[] {
  const expanded = identities.flatMap((text) => {
    const identity = spiffeOf(text)
    if (identity === undefined) return [text]
    return [text, ...aliases.map((trustDomain) => buildSpiffe({ ...identity, trustDomain }))]
  })
  return [...new Set(expanded)]
}
