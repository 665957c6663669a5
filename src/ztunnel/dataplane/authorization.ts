// Asks the policies about one connection and logs what they said.
import { quoted, type Scope } from '../../observability/index.ts'
import { type AuthorizationDecision, type AuthorizationRequest, authorize, spiffeId } from '../decisions/index.ts'
import { formatAddress } from '../state/index.ts'
import type { PodContext } from './pod-context.ts'
import type { DataPlaneOptions } from './types.ts'

/** The decision on a new connection. */
export function authorizeConnection(context: PodContext, request: AuthorizationRequest): AuthorizationDecision {
  const decision = authorize(context.services.state, request)
  const { rbacLog, log } = context.services
  for (const policy of decision.missingPolicies) log.warn('policy of the workload is not known', { policy })
  const level = context.options.policyLogLevel
  if (!rbacLog.writes(level)) return decision
  for (const { policy, message } of decision.dryRun) logDecision(rbacLog, level, { message, policy, request })
  logDecision(rbacLog, level, { ...decision, request })
  return decision
}

function logDecision(
  log: Scope,
  level: DataPlaneOptions['policyLogLevel'],
  said: { readonly message: string; readonly policy?: string | undefined; readonly request: AuthorizationRequest },
): void {
  const { message, policy, request } = said
  log.log(level, message, {
    policy,
    'src.addr': formatAddress(request.source),
    'src.identity': request.identity === undefined ? undefined : quoted(spiffeId(request.identity)),
    'dst.addr': formatAddress(request.destination),
  })
}
