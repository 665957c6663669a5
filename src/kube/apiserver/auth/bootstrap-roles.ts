// The roles and bindings that every cluster has from its first start.
import { componentRoles } from './component-roles.ts'
import { nodeRules } from './node/index.ts'
import type { PolicyRule } from './rules.ts'

export interface BootstrapRole {
  readonly name: string
  readonly rules: readonly PolicyRule[]
  readonly labels?: Readonly<Record<string, string>>
  /** The rules are those of all roles with this label. */
  readonly aggregates?: string
  /** Groups that have the role in the whole cluster. */
  readonly groups?: readonly string[]
  readonly users?: readonly string[]
}

const read = ['get', 'list', 'watch']
const write = ['create', 'delete', 'deletecollection', 'patch', 'update']
const aggregateTo = (role: string): Record<string, string> => ({
  [`rbac.authorization.k8s.io/aggregate-to-${role}`]: 'true',
})
const rule = (apiGroup: string, resources: string, verbs: readonly string[]): PolicyRule => ({
  apiGroups: [apiGroup],
  resources: resources.split(' '),
  verbs,
})

const editable: readonly (readonly [string, string])[] = [
  [
    '',
    'configmaps endpoints events persistentvolumeclaims pods replicationcontrollers replicationcontrollers/scale serviceaccounts services',
  ],
  ['apps', 'daemonsets deployments deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale'],
  ['autoscaling', 'horizontalpodautoscalers'],
  ['batch', 'cronjobs jobs'],
  ['networking.k8s.io', 'ingresses networkpolicies'],
  ['policy', 'poddisruptionbudgets'],
  ['coordination.k8s.io', 'leases'],
]

const editRules: readonly PolicyRule[] = [
  ...editable.map(([apiGroup, resources]) => rule(apiGroup, resources, write)),
  rule('', 'pods/attach pods/exec pods/portforward pods/proxy services/proxy', ['get', ...read.slice(1), ...write]),
  rule('', 'secrets', [...read, ...write]),
  rule('', 'pods/eviction serviceaccounts/token', ['create']),
  rule('', 'serviceaccounts', ['impersonate']),
]

const viewRules: readonly PolicyRule[] = [
  ...editable.map(([apiGroup, resources]) => rule(apiGroup, resources, read)),
  rule(
    '',
    'bindings limitranges namespaces namespaces/status pods/log pods/status resourcequotas services/status',
    read,
  ),
  rule('apps', 'controllerrevisions daemonsets/status deployments/status replicasets/status statefulsets/status', read),
  rule('batch', 'cronjobs/status jobs/status', read),
  rule('discovery.k8s.io', 'endpointslices', read),
]

const adminRules: readonly PolicyRule[] = [
  rule('rbac.authorization.k8s.io', 'roles rolebindings', [...read, ...write]),
  rule('authorization.k8s.io', 'localsubjectaccessreviews', ['create']),
]

const paths = (...nonResourceURLs: string[]): PolicyRule => ({ verbs: ['get'], nonResourceURLs })

export const bootstrapRoles: readonly BootstrapRole[] = [
  {
    name: 'cluster-admin',
    rules: [rule('*', '*', ['*']), { verbs: ['*'], nonResourceURLs: ['*'] }],
    groups: ['system:masters'],
  },
  { name: 'admin', rules: [], aggregates: 'admin' },
  { name: 'edit', rules: [], aggregates: 'edit', labels: aggregateTo('admin') },
  { name: 'view', rules: [], aggregates: 'view', labels: aggregateTo('edit') },
  { name: 'system:aggregate-to-admin', rules: adminRules, labels: aggregateTo('admin') },
  { name: 'system:aggregate-to-edit', rules: editRules, labels: aggregateTo('edit') },
  { name: 'system:aggregate-to-view', rules: viewRules, labels: aggregateTo('view') },
  {
    name: 'system:discovery',
    rules: [
      paths(
        '/api',
        '/api/*',
        '/apis',
        '/apis/*',
        '/healthz',
        '/livez',
        '/openapi',
        '/openapi/*',
        '/readyz',
        '/version',
        '/version/',
      ),
    ],
    groups: ['system:authenticated'],
  },
  {
    name: 'system:public-info-viewer',
    rules: [paths('/healthz', '/livez', '/readyz', '/version', '/version/')],
    groups: ['system:authenticated', 'system:unauthenticated'],
  },
  {
    name: 'system:basic-user',
    rules: [
      rule('authorization.k8s.io', 'selfsubjectaccessreviews selfsubjectrulesreviews', ['create']),
      rule('authentication.k8s.io', 'selfsubjectreviews', ['create']),
    ],
    groups: ['system:authenticated'],
  },
  {
    name: 'system:service-account-issuer-discovery',
    rules: [
      paths(
        '/.well-known/openid-configuration',
        '/.well-known/openid-configuration/',
        '/openid/v1/jwks',
        '/openid/v1/jwks/',
      ),
    ],
    groups: ['system:serviceaccounts'],
  },
  {
    name: 'system:auth-delegator',
    rules: [
      rule('authentication.k8s.io', 'tokenreviews', ['create']),
      rule('authorization.k8s.io', 'subjectaccessreviews', ['create']),
    ],
  },
  {
    name: 'system:monitoring',
    rules: [paths('/metrics', '/metrics/*', '/healthz', '/healthz/*', '/livez', '/livez/*', '/readyz', '/readyz/*')],
    groups: ['system:monitoring'],
  },
  // Bound to nobody: nodes have their rights from the Node authorizer, which knows which objects are theirs.
  { name: 'system:node', rules: nodeRules },
  ...componentRoles,
]
