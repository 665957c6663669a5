// The roles of the parts of a cluster that are no nodes: each may do what its work takes, and nothing else.
import type { BootstrapRole } from './bootstrap-roles.ts'
import type { PolicyRule } from './rules.ts'

const read = ['get', 'list', 'watch']
const rule = (
  apiGroup: string,
  resources: string,
  verbs: readonly string[],
  resourceNames?: readonly string[],
): PolicyRule => ({
  apiGroups: [apiGroup],
  resources: resources.split(' '),
  verbs,
  ...(resourceNames === undefined ? {} : { resourceNames }),
})

const events = rule('', 'events', ['create', 'get', 'patch', 'update'])

const controllerRules: readonly PolicyRule[] = [
  events,
  rule('', 'pods', [...read, 'create', 'delete']),
  rule('', 'nodes namespaces services', read),
  rule('', 'pods/status nodes/status', ['patch', 'update']),
  rule('', 'serviceaccounts', [...read, 'create']),
  rule('', 'endpoints', ['create', 'get', 'update']),
  // Only the one that every namespace has; a name can't limit what is created.
  rule('', 'configmaps', ['create']),
  rule('', 'configmaps', [...read, 'update'], ['kube-root-ca.crt']),
  rule('discovery.k8s.io', 'endpointslices', [...read, 'create', 'delete', 'update']),
  rule('apps', 'daemonsets statefulsets', read),
  rule('apps', 'deployments', [...read, 'patch']),
  rule('apps', 'replicasets', [...read, 'create', 'delete', 'update']),
  rule('apps', 'daemonsets/status deployments/status replicasets/status statefulsets/status', ['patch', 'update']),
  rule('batch', 'jobs', [...read, 'delete']),
  rule('batch', 'jobs/status', ['patch', 'update']),
  rule('policy', 'poddisruptionbudgets', read),
  rule('policy', 'poddisruptionbudgets/status', ['patch', 'update']),
  rule('coordination.k8s.io', 'leases', read),
  rule('certificates.k8s.io', 'certificatesigningrequests', [...read, 'delete']),
  rule('certificates.k8s.io', 'certificatesigningrequests/approval', ['update']),
  rule('certificates.k8s.io', 'signers', ['approve'], ['kubernetes.io/kubelet-serving']),
]

const schedulerRules: readonly PolicyRule[] = [
  events,
  rule('', 'pods nodes', read),
  rule('', 'pods/binding', ['create']),
  rule('', 'pods/status', ['patch', 'update']),
]

const proxyRules: readonly PolicyRule[] = [
  events,
  rule('', 'endpoints services', ['list', 'watch']),
  rule('', 'nodes', read),
  rule('discovery.k8s.io', 'endpointslices', ['list', 'watch']),
]

export const componentRoles: readonly BootstrapRole[] = [
  { name: 'system:kube-controller-manager', rules: controllerRules, users: ['system:kube-controller-manager'] },
  { name: 'system:kube-scheduler', rules: schedulerRules, users: ['system:kube-scheduler'] },
  { name: 'system:node-proxier', rules: proxyRules, users: ['system:kube-proxy'] },
]
