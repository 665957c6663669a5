// AuthorizationPolicies as node proxies enforce them, and what their owners are told about it.
import { create } from '@bufbuild/protobuf'
import type { AuthorizationPolicy, Condition } from '../../../api/index.ts'
import { security } from '../../../proto/index.ts'
import { isTrue } from '../waypoints/attachment.ts'
import { convertRule } from './match.ts'
import { selectedLabels } from './selection.ts'

export interface ConvertedPolicy {
  /** Absent where node proxies do not get the policy. */
  readonly message?: security.Authorization
  /** The ZtunnelAccepted condition; absent for policies that target something else than workloads. */
  readonly accepted?: Condition
  /** Values that were left out because they cannot be read. */
  readonly invalid: readonly string[]
}

export function convertAuthorizationPolicy(
  policy: AuthorizationPolicy,
  { rootNamespace, dryRunPolicies }: { readonly rootNamespace: string; readonly dryRunPolicies: boolean },
): ConvertedPolicy {
  const { metadata } = policy
  const spec = policy.spec ?? {}
  const namespace = metadata.namespace ?? ''
  const refuse = (message: string): ConvertedPolicy => ({
    accepted: accepted(policy, 'False', 'UnsupportedValue', message),
    invalid: [],
  })
  const dryRun = isTrue(metadata.annotations?.['istio.io/dry-run'])
  if (hasTargets(policy)) return { invalid: [] }
  if (dryRun && !dryRunPolicies) {
    return refuse(
      `found policy "${namespace}/${metadata.name}" using dry-run annotation, but support for ambient dry-run authorizationPolicies isn't enabled`,
    )
  }
  const action = spec.action ?? 'ALLOW'
  if (action === 'AUDIT' || action === 'CUSTOM') return refuse(`ztunnel does not support the ${action} action`)
  if (action !== 'ALLOW' && action !== 'DENY') return denyAll(policy, action, rootNamespace)

  const written: unknown = spec.rules ?? []
  // What is no list is one rule that cannot be read.
  const rules = (Array.isArray(written) ? written : [null]).map((rule) => convertRule(rule, action, namespace))
  const l7 = [...new Set(rules.flatMap((rule) => rule.l7))].sort()
  const message = create(security.AuthorizationSchema, {
    name: metadata.name,
    namespace,
    scope: scopeOf(policy, rootNamespace),
    action: security.Action[action],
    groups: rules.flatMap(({ group }) => (group === undefined ? [] : [group])),
    dryRun,
  })
  const invalid = rules.flatMap((rule) => rule.invalid)
  const isEnforceable = rules.some(({ enforceable }) => enforceable)
  const condition =
    l7.length === 0
      ? accepted(policy, 'True', 'Accepted', 'attached to ztunnel')
      : accepted(policy, 'True', 'UnsupportedValue', l7Message(l7, action, isEnforceable))
  return { message, accepted: condition, invalid }
}

export function hasTargets({ spec }: AuthorizationPolicy): boolean {
  return (spec?.targetRef ?? undefined) !== undefined || (spec?.targetRefs ?? []).length > 0
}

/** What an action that is no action was to say is not known: it denies. */
function denyAll(policy: AuthorizationPolicy, action: string, rootNamespace: string): ConvertedPolicy {
  const { namespace = '', name } = policy.metadata
  return {
    message: create(security.AuthorizationSchema, {
      name,
      namespace,
      scope: scopeOf(policy, rootNamespace),
      action: security.Action.DENY,
      groups: [{}],
    }),
    accepted: accepted(
      policy,
      'False',
      'UnsupportedValue',
      `unknown action ${JSON.stringify(action)}: expected ALLOW or DENY. Until then everything is denied.`,
    ),
    invalid: [`action: ${JSON.stringify(action)}`],
  }
}

function scopeOf({ metadata, spec }: AuthorizationPolicy, rootNamespace: string): security.Scope {
  if (selectedLabels(spec) !== undefined) return security.Scope.WORKLOAD_SELECTOR
  return metadata.namespace === rootNamespace ? security.Scope.GLOBAL : security.Scope.NAMESPACE
}

function accepted(
  { metadata }: AuthorizationPolicy,
  status: Condition['status'],
  reason: string,
  message: string,
): Condition {
  return {
    type: 'ZtunnelAccepted',
    status,
    reason,
    message,
    ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
  }
}

function l7Message(found: readonly string[], action: 'ALLOW' | 'DENY', enforceable: boolean): string {
  const start = `ztunnel does not support HTTP attributes (found: ${found.join(', ')}). In ambient mode you must use a waypoint proxy to enforce HTTP rules. `
  if (action === 'ALLOW') {
    return `${start}Within an ALLOW policy, rules matching HTTP attributes are omitted. This will be more restrictive than requested.`
  }
  return enforceable
    ? `${start}DENY policy with HTTP attributes is enforced without the HTTP rules. This will be more restrictive than requested.`
    : `${start}After omitting unsupported HTTP attributes, this DENY policy has no enforceable rules at ztunnel and will have no effect. Deploy a waypoint proxy and use a targetRef to enforce this policy.`
}
