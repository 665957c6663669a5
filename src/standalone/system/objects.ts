// Building blocks of the system's objects.
import type { KubeObject, ObjectMeta } from '../../api/index.ts'

export function object(
  apiVersion: string,
  kind: string,
  metadata: ObjectMeta,
  rest: Record<string, unknown> = {},
): KubeObject {
  return { apiVersion, kind, metadata, ...rest }
}

export interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
  readonly resourceNames?: readonly string[]
}

/** A service account that has the rules in the whole cluster. */
export function accountWithRules(name: string, namespace: string, rules: readonly Rule[]): KubeObject[] {
  const role = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: `${name}-${namespace}` }
  return [
    object('v1', 'ServiceAccount', { name, namespace }),
    object('rbac.authorization.k8s.io/v1', 'ClusterRole', { name: role.name }, { rules }),
    object(
      'rbac.authorization.k8s.io/v1',
      'ClusterRoleBinding',
      { name: role.name },
      { roleRef: role, subjects: [{ kind: 'ServiceAccount', name, namespace }] },
    ),
  ]
}

export function fromField(name: string, fieldPath: string) {
  return { name, valueFrom: { fieldRef: { fieldPath } } }
}

export const read = ['get', 'list', 'watch']

/** What a pod of the system tolerates: everything. */
export const tolerations = [{ operator: 'Exists' }]
