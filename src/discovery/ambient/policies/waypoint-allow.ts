// The implicit policy that lets a waypoint reach the workloads behind it.
import { create } from '@bufbuild/protobuf'
import { security } from '../../../proto/index.ts'
import type { Waypoint } from '../waypoints/waypoint.ts'

export function waypointAllowKey({ namespace, name }: Pick<Waypoint, 'namespace' | 'name'>): string {
  return `${namespace}/${waypointAllowName({ namespace, name })}`
}

/** `principals`: those of the waypoint's pods, as policies write them. */
export function waypointAllow(
  { namespace, name }: Pick<Waypoint, 'namespace' | 'name'>,
  principals: readonly string[],
): security.Authorization {
  return create(security.AuthorizationSchema, {
    name: waypointAllowName({ namespace, name }),
    namespace,
    scope: security.Scope.WORKLOAD_SELECTOR,
    action: security.Action.ALLOW,
    groups: [
      {
        rules: [
          {
            matches: [
              {
                principals: principals.map((principal) => ({
                  matchType: { case: 'exact' as const, value: principal },
                })),
              },
            ],
          },
        ],
      },
    ],
  })
}

function waypointAllowName({ namespace, name }: Pick<Waypoint, 'namespace' | 'name'>): string {
  return `istio_allow_waypoint_${namespace}_${name}`
}
