// What must hold of a connection for a policy to match at all, as texts to look policies up by. Most policies name whom they are about;
// of ten thousand of them a connection then concerns a few.
import type { Policy, PolicyMatch } from '../model.ts'

/** What policies are looked up by. Without an identity only the port is known. */
export interface PolicyFacts {
  readonly namespace?: string
  readonly serviceAccount?: string
  /** The SPIFFE id without its scheme. */
  readonly principal?: string
  /** Of the destination. */
  readonly port: number
}

/** Under this a policy stands that may match any connection. */
const anyConnection = '*'

/** A policy can only match a connection that meets one of these. Empty: it matches none. */
export function conditionsOf({ rules }: Pick<Policy, 'rules'>): ReadonlySet<string> {
  const conditions = new Set<string>()
  for (const rule of rules) {
    const ofRule = fewest(rule.map(conditionsOfClause))
    if (ofRule === undefined) return new Set([anyConnection])
    for (const one of ofRule) conditions.add(one)
  }
  return conditions
}

/** Those a connection meets. */
export function conditionsMet({ namespace, serviceAccount, principal, port }: PolicyFacts): readonly string[] {
  const met = [anyConnection, ofPort(port)]
  if (principal !== undefined) met.push(ofPrincipal(principal))
  if (namespace === undefined) return met
  met.push(ofNamespace(namespace))
  if (serviceAccount !== undefined) met.push(ofAccount(namespace, serviceAccount))
  return met
}

const ofPrincipal = (principal: string): string => `i${principal}`
const ofNamespace = (namespace: string): string => `n${namespace}`
const ofPort = (port: number): string => `p${port}`
const ofAccount = (namespace: string, account: string): string => `a${namespace.length}:${namespace}${account}`

/** Undefined: any connection may meet it. */
type Conditions = readonly string[] | undefined

function fewest(all: readonly Conditions[]): Conditions {
  let best: Conditions
  for (const one of all) if (one !== undefined && (best === undefined || one.length < best.length)) best = one
  return best
}

/** A clause without matches holds of every connection. */
function conditionsOfClause(matches: readonly PolicyMatch[]): Conditions {
  if (matches.length === 0) return undefined
  const conditions: string[] = []
  for (const match of matches) {
    const ofMatch = conditionsOfMatch(match)
    if (ofMatch === undefined) return undefined
    conditions.push(...ofMatch)
  }
  return conditions
}

/** The most telling of the attributes that a connection must have exactly. */
function conditionsOfMatch(match: PolicyMatch): Conditions {
  const { principals, serviceAccounts, namespaces, destinationPorts } = match
  return (
    exactly(principals, ofPrincipal) ??
    (serviceAccounts.length === 0
      ? undefined
      : serviceAccounts.map((one) => ofAccount(one.namespace, one.serviceAccount))) ??
    exactly(namespaces, ofNamespace) ??
    (destinationPorts.length === 0 ? undefined : destinationPorts.map(ofPort))
  )
}

function exactly(matches: PolicyMatch['principals'], condition: (value: string) => string): Conditions {
  const values = matches.flatMap((one) => (one.kind === 'exact' ? [condition(one.value)] : []))
  return values.length > 0 && values.length === matches.length ? values : undefined
}
