// Asks the policies about one connection and logs what they said.
import type { Scope } from '../../observability/index.ts'
import { type AuthorizationDecision, type AuthorizationRequest, authorize } from '../decisions/index.ts'
import { formatAddress } from '../state/index.ts'
import type { PodContext } from './pod-context.ts'

/** The decision on a new connection. */
export function authorizeConnection(context: PodContext, request: AuthorizationRequest): AuthorizationDecision {
  const decision = authorize(context.services.state, request)
  const { log } = context.services
  for (const policy of decision.missingPolicies) log.warn('policy of the workload is not known', { policy })
  for (const { policy, message } of decision.dryRun) logDecision(log, message, policy, request)
  logDecision(log, decision.message, decision.policy, request)
  return decision
}

function logDecision(log: Scope, message: string, policy: string | undefined, request: AuthorizationRequest): void {
  if (!log.writes('debug')) return
  log.debug(message, {
    policy,
    'src.addr': formatAddress(request.source),
    'dst.addr': formatAddress(request.destination),
  })
}
