// Rights of the nodes of an instance beyond those that every node of a cluster has.
import type { KubeObject } from '../../api/index.ts'
import { object } from './objects.ts'

const name = 'lateen-service-proxy'
const apiGroup = 'rbac.authorization.k8s.io'

/** A node's process also gives service addresses their meaning, for which it follows what is behind each service. */
export function nodeRights(): KubeObject[] {
  return [
    object(
      `${apiGroup}/v1`,
      'ClusterRole',
      { name },
      { rules: [{ apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] }] },
    ),
    object(
      `${apiGroup}/v1`,
      'ClusterRoleBinding',
      { name },
      {
        roleRef: { apiGroup, kind: 'ClusterRole', name },
        subjects: [{ apiGroup, kind: 'Group', name: 'system:nodes' }],
      },
    ),
  ]
}
