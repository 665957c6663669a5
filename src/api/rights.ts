// What each part of the mesh may do in a cluster: the least that it works with, under the names that Istio's charts use.
import type { KubeObject } from './objects.ts'

export interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
  readonly resourceNames?: readonly string[]
}

export interface ControlPlaneRightsOptions {
  readonly namespace: string
  /** Signers of the cluster that sign for the mesh, such as `example.com/mesh`. */
  readonly signers?: readonly string[]
  /** The roots are handed out as a ClusterTrustBundle. */
  readonly trustBundles?: boolean
}

const follow = ['list', 'watch']
const readVerbs = ['get', ...follow]

const apiGroup = 'rbac.authorization.k8s.io'

const istioGroups = ['networking.istio.io', 'security.istio.io', 'telemetry.istio.io', 'extensions.istio.io']

/** What is read of every cluster of the mesh. */
const clusterReading: readonly Rule[] = [
  { apiGroups: [''], resources: ['namespaces', 'nodes', 'pods', 'services'], verbs: follow },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: follow },
  { apiGroups: ['gateway.networking.k8s.io'], resources: ['gateways', 'gatewayclasses'], verbs: follow },
  { apiGroups: ['networking.istio.io'], resources: ['serviceentries', 'workloadentries'], verbs: follow },
  { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
]

/** Names of the ConfigMaps with which roots and revocations are handed out. They cannot be named for those that are yet to be made. */
const rootConfigMaps: readonly Rule[] = [
  {
    apiGroups: [''],
    resources: ['configmaps'],
    resourceNames: ['istio-ca-root-cert', 'istio-ca-crl'],
    verbs: [...follow, 'patch'],
  },
  { apiGroups: [''], resources: ['configmaps'], verbs: ['create'] },
]

const leases: Rule = {
  apiGroups: ['coordination.k8s.io'],
  resources: ['leases'],
  verbs: ['get', 'create', 'update'],
}

/** The account `istiod`, with its rights in the cluster and in its own namespace. */
export function controlPlaneRights({
  namespace,
  signers = [],
  trustBundles = false,
}: ControlPlaneRightsOptions): KubeObject[] {
  const account = { name: 'istiod', namespace }
  return [
    serviceAccount(account),
    ...clusterRole(`istiod-clusterrole-${namespace}`, account, [
      ...clusterReading,
      { apiGroups: istioGroups, resources: ['*'], verbs: readVerbs },
      // Conditions and addresses, never what people wish for.
      { apiGroups: istioGroups, resources: ['*/status'], verbs: ['patch'] },
      { apiGroups: [''], resources: ['services/status'], verbs: ['patch'] },
      // Of proxies that register themselves.
      { apiGroups: ['networking.istio.io'], resources: ['workloadentries'], verbs: ['create', 'patch', 'delete'] },
      ...rootConfigMaps,
      { apiGroups: [''], resources: ['events'], verbs: ['create'] },
      // Tags of revisions.
      {
        apiGroups: ['admissionregistration.k8s.io'],
        resources: ['mutatingwebhookconfigurations'],
        verbs: follow,
      },
      ...(signers.length === 0 ? [] : signing(signers)),
      ...(trustBundles ? bundling : []),
    ]),
    ...role('istiod', namespace, account, [
      // Of remote clusters, signing material, and roots of other sources of configuration.
      { apiGroups: [''], resources: ['secrets'], verbs: [...readVerbs, 'create', 'update'] },
      { apiGroups: [''], resources: ['configmaps'], verbs: follow },
      leases,
    ]),
  ]
}

function signing(signers: readonly string[]): readonly Rule[] {
  const apiGroups = ['certificates.k8s.io']
  return [
    { apiGroups, resources: ['certificatesigningrequests'], verbs: [...follow, 'create', 'delete'] },
    { apiGroups, resources: ['certificatesigningrequests/approval'], verbs: ['update'] },
    { apiGroups, resources: ['signers'], resourceNames: signers, verbs: ['approve'] },
  ]
}

const bundling: readonly Rule[] = [
  {
    apiGroups: ['certificates.k8s.io'],
    resources: ['clustertrustbundles'],
    resourceNames: ['istio.io:istiod-ca:root-cert'],
    verbs: [...follow, 'patch'],
  },
  { apiGroups: ['certificates.k8s.io'], resources: ['clustertrustbundles'], verbs: ['create'] },
  {
    apiGroups: ['certificates.k8s.io'],
    resources: ['signers'],
    resourceNames: ['istio.io/istiod-ca'],
    verbs: ['attest'],
  },
]

/** The account by which the control plane of another cluster reads this one, and hands out its roots where it is asked to. */
export function remoteReaderRights(namespace: string): KubeObject[] {
  const account = { name: 'istio-reader-service-account', namespace }
  return [
    serviceAccount(account),
    ...clusterRole(`istio-reader-clusterrole-${namespace}`, account, [...clusterReading, ...rootConfigMaps]),
    ...role('istio-reader', namespace, account, [
      { apiGroups: [''], resources: ['configmaps'], verbs: readVerbs },
      leases,
    ]),
  ]
}

/** The account `istio-cni` of the node agents. */
export function nodeAgentRights(namespace: string): KubeObject[] {
  const account = { name: 'istio-cni', namespace }
  return [
    serviceAccount(account),
    ...clusterRole('istio-cni', account, [
      { apiGroups: [''], resources: ['pods', 'namespaces'], verbs: readVerbs },
      { apiGroups: [''], resources: ['nodes'], verbs: ['get'] },
      // What it did, as an annotation.
      { apiGroups: [''], resources: ['pods/status'], verbs: ['patch'] },
    ]),
    // Whether it is to go for good.
    ...role('istio-cni', namespace, account, [
      { apiGroups: ['apps'], resources: ['daemonsets'], resourceNames: ['istio-cni-node'], verbs: ['get'] },
    ]),
  ]
}

/** The account `ztunnel` of the node proxies, which ask nothing of the API server. */
export function nodeProxyRights(namespace: string): KubeObject[] {
  return [serviceAccount({ name: 'ztunnel', namespace })]
}

interface Account {
  readonly name: string
  readonly namespace: string
}

/** An account without rights of its own. */
export function serviceAccount(account: Account): KubeObject {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...account } }
}

/** A role in the whole cluster that the account has. */
export function clusterRole(name: string, account: Account, rules: readonly Rule[]): KubeObject[] {
  return bound('ClusterRole', { name }, account, rules)
}

function role(name: string, namespace: string, account: Account, rules: readonly Rule[]): KubeObject[] {
  return bound('Role', { name, namespace }, account, rules)
}

function bound(
  kind: 'ClusterRole' | 'Role',
  metadata: { readonly name: string; readonly namespace?: string },
  account: Account,
  rules: readonly Rule[],
): KubeObject[] {
  const apiVersion = `${apiGroup}/v1`
  const binding = {
    roleRef: { apiGroup, kind, name: metadata.name },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  }
  return [
    { apiVersion, kind, metadata: { ...metadata }, ...{ rules } },
    { apiVersion, kind: `${kind}Binding`, metadata: { ...metadata }, ...binding },
  ]
}
