// Whether policies let a connection in: DENY before ALLOW; with no ALLOW policy everything not denied passes.
import type { Policy, PolicyMatch, ServiceAccountMatch, StringMatch } from '../model.ts'
import { cidrContains, type IpBits, ipBits } from '../state/address.ts'
import { type MeshView, policyKey } from '../state/view.ts'
import { principal } from './identity.ts'
import type { AuthorizationDecision, AuthorizationRequest } from './types.ts'

/** Decides for one connection under the policies that are in force for its destination now. */
export function authorize(view: MeshView, request: AuthorizationRequest): AuthorizationDecision {
  const connection = readConnection(request)
  const dryRun: { policy?: string; message: string }[] = []
  let denied: string | undefined
  let allowed: string | undefined
  let dryRunAllowed = false
  const applicable = view.policiesFor(request.destinationWorkload, connection)
  const { allow: allowPolicies, dryRunAllow: dryRunAllowPolicies } = applicable
  for (const policy of applicable.policies) {
    const deny = policy.action === 'Deny'
    if (!policy.dryRun && (deny ? denied : allowed) !== undefined) continue
    if (!connectionMatches(policy, connection)) continue
    const key = policyKey(policy)
    if (policy.dryRun) {
      dryRun.push({ policy: key, message: `dry-run: ${deny ? 'deny' : 'allow'} policy match` })
      dryRunAllowed ||= !deny
    } else if (deny) denied = key
    else allowed = key
  }
  if (allowPolicies === 0 && dryRunAllowPolicies > 0 && !dryRunAllowed) {
    dryRun.push({ message: 'dry-run: no allow policies match' })
  }
  const missingPolicies = request.destinationWorkload.authorizationPolicies.filter(
    (key) => view.policy(key) === undefined,
  )
  const extra = { dryRun, missingPolicies }
  if (denied !== undefined) {
    const reason = `explicitly denied by: ${denied}`
    return { allowed: false, policy: denied, reason, message: 'deny policy match', ...extra }
  }
  if (allowPolicies === 0) {
    return { allowed: true, reason: 'no allow policies', message: 'no allow policies, allow', ...extra }
  }
  if (allowed !== undefined) {
    return { allowed: true, policy: allowed, reason: `allowed by: ${allowed}`, message: 'allow policy match', ...extra }
  }
  const reason = 'allow policies exist, but none allowed'
  return { allowed: false, reason, message: 'no allow policies matched', ...extra }
}

/** Whether the rules of a policy match a connection, whatever its action. */
export function policyMatches(
  policy: Pick<Policy, 'rules'>,
  request: Omit<AuthorizationRequest, 'destinationWorkload'>,
): boolean {
  return connectionMatches(policy, readConnection(request))
}

export function stringMatches(match: StringMatch, value: string): boolean {
  switch (match.kind) {
    case 'exact':
      return value === match.value
    case 'prefix':
      return value.startsWith(match.value)
    case 'suffix':
      return value.endsWith(match.value)
    case 'presence':
      return value !== ''
  }
}

interface Connection {
  readonly namespace?: string
  readonly serviceAccount?: string
  readonly principal?: string
  readonly source: IpBits
  readonly destination: IpBits
  readonly port: number
}

function readConnection(request: Omit<AuthorizationRequest, 'destinationWorkload'>): Connection {
  const { identity } = request
  let source: IpBits | undefined
  let destination: IpBits | undefined
  return {
    // Most policies do not look at addresses.
    get source() {
      source ??= ipBits(request.source.ip)
      return source
    },
    get destination() {
      destination ??= ipBits(request.destination.ip)
      return destination
    },
    port: request.destination.port,
    ...(identity === undefined
      ? {}
      : { namespace: identity.namespace, serviceAccount: identity.serviceAccount, principal: principal(identity) }),
  }
}

function connectionMatches(policy: Pick<Policy, 'rules'>, connection: Connection): boolean {
  return policy.rules.some((rule) =>
    rule.every((clause) => clause.length === 0 || clause.some((match) => attributesMatch(match, connection))),
  )
}

function attributesMatch(match: PolicyMatch, connection: Connection): boolean {
  if (isEmpty(match)) return false
  const account = (one: ServiceAccountMatch): boolean =>
    one.namespace === connection.namespace && one.serviceAccount === connection.serviceAccount
  const text = (value: string | undefined) => (one: StringMatch) => value !== undefined && stringMatches(one, value)
  return (
    passes(match.namespaces, match.notNamespaces, text(connection.namespace)) &&
    passes(match.principals, match.notPrincipals, text(connection.principal)) &&
    passes(match.serviceAccounts, match.notServiceAccounts, account) &&
    passes(match.sourceIps, match.notSourceIps, (one) => cidrContains(one, connection.source)) &&
    passes(match.destinationIps, match.notDestinationIps, (one) => cidrContains(one, connection.destination)) &&
    passes(match.destinationPorts, match.notDestinationPorts, (one) => one === connection.port)
  )
}

function passes<T>(wanted: readonly T[], unwanted: readonly T[], holds: (one: T) => boolean): boolean {
  return (wanted.length === 0 || wanted.some(holds)) && !unwanted.some(holds)
}

function isEmpty(match: PolicyMatch): boolean {
  return (
    match.namespaces.length + match.notNamespaces.length + match.principals.length + match.notPrincipals.length === 0 &&
    match.serviceAccounts.length + match.notServiceAccounts.length === 0 &&
    match.sourceIps.length + match.notSourceIps.length === 0 &&
    match.destinationIps.length + match.notDestinationIps.length === 0 &&
    match.destinationPorts.length + match.notDestinationPorts.length === 0
  )
}
