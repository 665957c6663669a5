// The status conditions that tell the owners of objects how the mesh took them.
import type { Condition, ServiceEntry } from '../../api/index.ts'
import type { AmbientMeshConfig } from './inputs.ts'
import type { Attachment } from './waypoints/attachment.ts'

/** All conditions of our types that an object must carry; those of our types that are not listed must go. */
export interface ObjectConditions {
  readonly kind: 'Service' | 'ServiceEntry' | 'WorkloadEntry' | 'AuthorizationPolicy'
  readonly namespace: string
  readonly name: string
  readonly conditions: readonly Condition[]
}

/** The types of condition written on each kind. */
export const ownedConditionTypes = {
  Service: ['istio.io/WaypointBound'],
  ServiceEntry: ['istio.io/WaypointBound', 'istio.io/WaypointMissing', 'istio.io/VisibilityApplied'],
  WorkloadEntry: ['istio.io/WaypointBound'],
  AuthorizationPolicy: ['ZtunnelAccepted', 'WaypointAccepted'],
} as const satisfies Record<ObjectConditions['kind'], readonly string[]>

/** WaypointBound; nothing where no waypoint is referenced. */
export function waypointBound(attachment: Attachment, withIngress: boolean): Condition[] {
  const type = 'istio.io/WaypointBound'
  switch (attachment.kind) {
    case 'none':
      return []
    case 'refused':
      return [{ type, status: 'False', ...attachment.refusal }]
    case 'bound': {
      const { waypoint, ingress, canary } = attachment
      const suffix = canary?.kind === 'refused' ? `. Canary waypoint not attached: ${canary.refusal.message}` : ''
      const message = `Successfully attached to waypoint ${waypoint.namespace}/${waypoint.name}${withIngress ? ingressText(ingress) : ''}${suffix}`
      return [{ type, status: 'True', reason: 'WaypointAccepted', message }]
    }
  }
}

export function serviceEntryConditions(
  entry: ServiceEntry,
  attachment: Attachment,
  visibility: 'PUBLIC' | 'NAMESPACE',
  visibilityConfig: AmbientMeshConfig['serviceEntryVisibility'],
): Condition[] {
  const applied = visibilityConfig === undefined ? [] : [visibilityApplied(visibility)]
  return [...waypointBound(attachment, true), ...waypointMissing(entry, attachment), ...applied]
}

function ingressText(ingress: boolean | undefined): string {
  if (ingress === undefined) return ''
  return ingress
    ? '. Ingress traffic will traverse the waypoint'
    : '. Ingress traffic is not using the waypoint, set the istio.io/ingress-use-waypoint label to true if desired.'
}

function waypointMissing({ metadata, spec }: ServiceEntry, attachment: Attachment): Condition[] {
  if (attachment.kind === 'bound') return []
  const missing = (reason: string, message: string): Condition[] => [
    { type: 'istio.io/WaypointMissing', status: 'True', reason, message },
  ]
  if (metadata.annotations?.['istio.io/connect-strategy']?.toUpperCase() === 'RACE_FIRST_TCP_CONNECT') {
    return missing(
      'NoWaypointForRacingConnectStrategy',
      'ServiceEntry has a non-default connect strategy but no waypoint bound. A waypoint is required for connect strategies to take effect for ambient clients.',
    )
  }
  if ((spec?.hosts ?? []).some((host) => host.startsWith('*'))) {
    return missing('NoWaypointForWildcardService', 'ServiceEntry will not apply until it is bound to a valid waypoint.')
  }
  return []
}

function visibilityApplied(visibility: 'PUBLIC' | 'NAMESPACE'): Condition {
  const type = 'istio.io/VisibilityApplied'
  return visibility === 'PUBLIC'
    ? { type, status: 'True', reason: 'Public', message: 'ServiceEntry is visible to the entire mesh (PUBLIC).' }
    : {
        type,
        status: 'True',
        reason: 'Namespace',
        message: 'ServiceEntry is visible only within its own namespace (NAMESPACE), per mesh serviceEntryVisibility.',
      }
}
