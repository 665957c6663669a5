// The rules of the role `system:node`. The Node authorizer goes by them too, after it has narrowed what is a node's own.
import type { PolicyRule } from '../rules.ts'

const read = ['get', 'list', 'watch']
const rule = (apiGroup: string, resources: string, verbs: readonly string[]): PolicyRule => ({
  apiGroups: [apiGroup],
  resources: resources.split(' '),
  verbs,
})

export const nodeRules: readonly PolicyRule[] = [
  rule('', 'nodes', [...read, 'create', 'update', 'patch']),
  rule('', 'nodes/status', ['patch', 'update']),
  rule('', 'pods', [...read, 'create', 'delete']),
  rule('', 'pods/status', ['patch', 'update']),
  rule('', 'pods/eviction serviceaccounts/token', ['create']),
  rule('', 'configmaps secrets services', read),
  rule('', 'endpoints persistentvolumeclaims persistentvolumes', ['get']),
  rule('', 'events', ['create', 'patch', 'update']),
  rule('events.k8s.io', 'events', ['create', 'patch', 'update']),
  rule('coordination.k8s.io', 'leases', ['create', 'delete', 'get', 'patch', 'update']),
  rule('certificates.k8s.io', 'certificatesigningrequests', ['create', ...read]),
  rule('certificates.k8s.io', 'clustertrustbundles', read),
  rule('node.k8s.io', 'runtimeclasses', read),
  rule('authentication.k8s.io', 'tokenreviews', ['create']),
  rule('authorization.k8s.io', 'subjectaccessreviews localsubjectaccessreviews', ['create']),
]
