// Whether the targets of an AuthorizationPolicy have a waypoint that enforces it.
import type { AuthorizationPolicy, Condition, PolicyTargetReference } from '../../../api/index.ts'
import type { Attachment } from '../waypoints/attachment.ts'

/** What the targets are looked up in. */
export interface TargetLookup {
  readonly rootNamespace: string
  gatewayClassController(name: string): string | undefined
  isWaypoint(namespace: string, name: string): boolean
  /** How a Service or ServiceEntry is attached; undefined where there is none. */
  attachment(kind: 'Service' | 'ServiceEntry', namespace: string, name: string): Attachment | undefined
}

interface TargetStatus {
  readonly bound: boolean
  readonly reason: string
  readonly message: string
}

/** The WaypointAccepted condition; undefined for a policy without targets. */
export function waypointAccepted(policy: AuthorizationPolicy, lookup: TargetLookup): Condition | undefined {
  const { metadata, spec } = policy
  const single = spec?.targetRef === undefined ? [] : [spec.targetRef]
  const targets = (spec?.targetRefs ?? []).length > 0 ? (spec?.targetRefs ?? []) : single
  const [first] = targets
  if (first === undefined) return undefined
  const namespace = metadata.namespace ?? ''
  const statuses = targets.map((target) => ({ target, ...targetStatus(target, namespace, lookup) }))
  const unbound = statuses.filter(({ bound }) => !bound)
  const [only] = statuses
  const outcome =
    statuses.length === 1 && only !== undefined
      ? { bound: only.bound, reason: only.reason, message: only.message }
      : {
          bound: unbound.length < statuses.length,
          reason: unbound.length === 0 ? 'Accepted' : unbound.length < statuses.length ? 'PartiallyInvalid' : 'Invalid',
          message:
            unbound.length === 0
              ? ''
              : `Invalid targetRefs: ${unbound.map(({ target }) => targetText(target, namespace)).join(', ')}`,
        }
  return {
    type: 'WaypointAccepted',
    status: outcome.bound ? 'True' : 'False',
    reason: outcome.reason,
    message: outcome.message,
    ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
  }
}

function targetText({ group, kind, name }: PolicyTargetReference, namespace: string): string {
  return `${kind}.${group === undefined || group === '' ? 'core' : group}:${namespace}/${name}`
}

function targetStatus(target: PolicyTargetReference, namespace: string, lookup: TargetLookup): TargetStatus {
  const { kind, name } = target
  const key = `${namespace}/${name}`
  const bound = (to: string): TargetStatus => ({ bound: true, reason: 'Accepted', message: `bound to ${to}` })
  const unbound = (reason: string, message: string): TargetStatus => ({ bound: false, reason, message })
  switch (kind) {
    case 'GatewayClass': {
      if (namespace !== lookup.rootNamespace) {
        return unbound(
          'Invalid',
          `AuthorizationPolicy must be in the root namespace \`${lookup.rootNamespace}\` when referencing a GatewayClass`,
        )
      }
      const controller = lookup.gatewayClassController(name)
      if (controller === undefined) return unbound('TargetNotFound', 'not bound')
      if (controller === 'istio.io/mesh-controller') return bound(name)
      return unbound('Invalid', 'GatewayClass must use controller name `istio.io/mesh-controller` for waypoints')
    }
    case 'Gateway':
      return lookup.isWaypoint(namespace, name) ? bound(key) : unbound('TargetNotFound', 'not bound')
    case 'Service':
    case 'ServiceEntry': {
      const attachment = lookup.attachment(kind, namespace, name)
      if (attachment === undefined) return unbound('TargetNotFound', `${kind} ${key} was not found`)
      if (attachment.kind === 'bound') return bound(`${attachment.waypoint.namespace}/${attachment.waypoint.name}`)
      return unbound('AncestorNotBound', `${kind} ${key} is not bound to a waypoint`)
    }
    default:
      return unbound('Invalid', `targetRef kind ${kind} is not supported`)
  }
}
