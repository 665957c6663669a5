// Asks the policies about one connection and logs what they said.
import { quoted, type Scope } from '../../observability/index.ts'
import {
  type AuthorizationDecision,
  type AuthorizationRequest,
  authorize,
  parseTraceparent,
  spiffeId,
} from '../decisions/index.ts'
import { formatAddress } from '../state/address.ts'
import type { PodContext } from './pod-context.ts'
import type { DataPlaneOptions } from './types.ts'

/** The decision on a new connection. `traceparent`: the header by which the client's proxy names it in its own log. */
export function authorizeConnection(
  context: PodContext,
  request: AuthorizationRequest,
  traceparent?: string,
): AuthorizationDecision {
  const decision = authorize(context.services.state, request)
  const { rbacLog, log } = context.services
  for (const policy of decision.missingPolicies) {
    if (context.tracker.isNewlyMissed(policy)) log.warn('policy of the workload is not known', { policy })
  }
  const level = context.options.policyLogLevel
  if (!rbacLog.writes(level)) return decision
  const id = parseTraceparent(traceparent)?.traceId
  for (const { policy, message } of decision.dryRun) logDecision(rbacLog, level, { message, policy, request, id })
  logDecision(rbacLog, level, { ...decision, request, id })
  return decision
}

function logDecision(
  log: Scope,
  level: DataPlaneOptions['policyLogLevel'],
  said: {
    readonly message: string
    readonly policy?: string | undefined
    readonly request: AuthorizationRequest
    readonly id: string | undefined
  },
): void {
  const { message, policy, request, id } = said
  log.log(level, message, {
    id,
    policy,
    'src.addr': formatAddress(request.source),
    'src.identity': request.identity === undefined ? undefined : quoted(spiffeId(request.identity)),
    'dst.addr': formatAddress(request.destination),
  })
}
