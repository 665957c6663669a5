// The resources our own processes read and write.
import type { Resource } from './objects.ts'

function resource(
  groupVersion: string,
  kind: string,
  plural: string,
  namespaced = true,
  otherVersions?: readonly string[],
): Resource {
  const [group, version] = groupVersion.includes('/') ? groupVersion.split('/') : ['', groupVersion]
  const others = otherVersions === undefined ? {} : { otherVersions }
  return { group: group ?? '', version: version ?? '', kind, plural, namespaced, ...others }
}

export const resources = {
  pods: resource('v1', 'Pod', 'pods'),
  services: resource('v1', 'Service', 'services'),
  nodes: resource('v1', 'Node', 'nodes', false),
  namespaces: resource('v1', 'Namespace', 'namespaces', false),
  secrets: resource('v1', 'Secret', 'secrets'),
  configMaps: resource('v1', 'ConfigMap', 'configmaps'),
  serviceAccounts: resource('v1', 'ServiceAccount', 'serviceaccounts'),
  events: resource('v1', 'Event', 'events'),
  endpointSlices: resource('discovery.k8s.io/v1', 'EndpointSlice', 'endpointslices'),
  deployments: resource('apps/v1', 'Deployment', 'deployments'),
  replicaSets: resource('apps/v1', 'ReplicaSet', 'replicasets'),
  statefulSets: resource('apps/v1', 'StatefulSet', 'statefulsets'),
  daemonSets: resource('apps/v1', 'DaemonSet', 'daemonsets'),
  jobs: resource('batch/v1', 'Job', 'jobs'),
  podDisruptionBudgets: resource('policy/v1', 'PodDisruptionBudget', 'poddisruptionbudgets'),
  leases: resource('coordination.k8s.io/v1', 'Lease', 'leases'),
  certificateSigningRequests: resource(
    'certificates.k8s.io/v1',
    'CertificateSigningRequest',
    'certificatesigningrequests',
    false,
  ),
  clusterTrustBundles: resource('certificates.k8s.io/v1beta1', 'ClusterTrustBundle', 'clustertrustbundles', false),
  tokenReviews: resource('authentication.k8s.io/v1', 'TokenReview', 'tokenreviews', false),
  customResourceDefinitions: resource(
    'apiextensions.k8s.io/v1',
    'CustomResourceDefinition',
    'customresourcedefinitions',
    false,
  ),
  serviceEntries: resource('networking.istio.io/v1', 'ServiceEntry', 'serviceentries', true, ['v1beta1', 'v1alpha3']),
  workloadEntries: resource('networking.istio.io/v1', 'WorkloadEntry', 'workloadentries', true, [
    'v1beta1',
    'v1alpha3',
  ]),
  workloadGroups: resource('networking.istio.io/v1', 'WorkloadGroup', 'workloadgroups', true, ['v1beta1', 'v1alpha3']),
  authorizationPolicies: resource('security.istio.io/v1', 'AuthorizationPolicy', 'authorizationpolicies', true, [
    'v1beta1',
  ]),
  peerAuthentications: resource('security.istio.io/v1', 'PeerAuthentication', 'peerauthentications', true, ['v1beta1']),
  gateways: resource('gateway.networking.k8s.io/v1', 'Gateway', 'gateways', true, ['v1beta1']),
  gatewayClasses: resource('gateway.networking.k8s.io/v1', 'GatewayClass', 'gatewayclasses', false, ['v1beta1']),
} as const satisfies Record<string, Resource>
