// The built-in kinds of Kubernetes that the API serves, with names, subresources and field selectors.
import type { Resource } from './objects.ts'

export interface KubernetesKind extends Resource {
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly subresources: readonly string[]
  /** Fields that field selectors may name besides metadata.name and metadata.namespace. */
  readonly selectableFields: readonly string[]
  /** Answered, never stored (TokenReview, SubjectAccessReview). */
  readonly virtual: boolean
  /** The class of `@kubernetes/client-node` that describes the kind. */
  readonly model: string
}

interface Row {
  readonly kind: string
  readonly plural: string
  readonly short?: string
  readonly cluster?: true
  readonly categories?: string
  readonly sub?: string
  readonly fields?: string
  readonly model?: string
  readonly virtual?: true
}

const words = (text: string | undefined): string[] => (text === undefined || text === '' ? [] : text.split(' '))

function kindsOf(groupVersion: string, rows: readonly Row[]): KubernetesKind[] {
  const [group, version] = groupVersion.includes('/') ? groupVersion.split('/') : ['', groupVersion]
  const prefix = (version ?? '').replace(/^v/, 'V')
  return rows.map((row) => ({
    group: group ?? '',
    version: version ?? '',
    kind: row.kind,
    plural: row.plural,
    singular: row.kind.toLowerCase(),
    namespaced: row.cluster !== true,
    shortNames: words(row.short),
    categories: words(row.categories),
    subresources: words(row.sub),
    selectableFields: words(row.fields),
    virtual: row.virtual === true,
    model: row.model ?? `${prefix}${row.kind}`,
  }))
}

const eventFields =
  'involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent source type'

export const kubernetesKinds: readonly KubernetesKind[] = [
  ...kindsOf('v1', [
    {
      kind: 'Pod',
      plural: 'pods',
      short: 'po',
      categories: 'all',
      sub: 'status log exec attach portforward eviction binding',
      fields:
        'spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork status.phase status.podIP status.nominatedNodeName',
    },
    {
      kind: 'Service',
      plural: 'services',
      short: 'svc',
      categories: 'all',
      sub: 'status',
      fields: 'spec.clusterIP spec.type',
    },
    {
      kind: 'Namespace',
      plural: 'namespaces',
      short: 'ns',
      cluster: true,
      sub: 'status finalize',
      fields: 'status.phase',
    },
    { kind: 'Node', plural: 'nodes', short: 'no', cluster: true, sub: 'status', fields: 'spec.unschedulable' },
    { kind: 'ConfigMap', plural: 'configmaps', short: 'cm' },
    { kind: 'Secret', plural: 'secrets', fields: 'type' },
    { kind: 'ServiceAccount', plural: 'serviceaccounts', short: 'sa', sub: 'token' },
    { kind: 'Endpoints', plural: 'endpoints', short: 'ep' },
    { kind: 'Event', plural: 'events', short: 'ev', model: 'CoreV1Event', fields: eventFields },
    { kind: 'LimitRange', plural: 'limitranges', short: 'limits' },
    { kind: 'ResourceQuota', plural: 'resourcequotas', short: 'quota', sub: 'status' },
    { kind: 'PersistentVolume', plural: 'persistentvolumes', short: 'pv', cluster: true, sub: 'status' },
    { kind: 'PersistentVolumeClaim', plural: 'persistentvolumeclaims', short: 'pvc', sub: 'status' },
    { kind: 'PodTemplate', plural: 'podtemplates' },
    {
      kind: 'ReplicationController',
      plural: 'replicationcontrollers',
      short: 'rc',
      categories: 'all',
      sub: 'status scale',
      fields: 'status.replicas',
    },
  ]),
  ...kindsOf('apps/v1', [
    { kind: 'Deployment', plural: 'deployments', short: 'deploy', categories: 'all', sub: 'status scale' },
    {
      kind: 'ReplicaSet',
      plural: 'replicasets',
      short: 'rs',
      categories: 'all',
      sub: 'status scale',
      fields: 'status.replicas',
    },
    { kind: 'StatefulSet', plural: 'statefulsets', short: 'sts', categories: 'all', sub: 'status scale' },
    { kind: 'DaemonSet', plural: 'daemonsets', short: 'ds', categories: 'all', sub: 'status' },
    { kind: 'ControllerRevision', plural: 'controllerrevisions' },
  ]),
  ...kindsOf('batch/v1', [
    { kind: 'Job', plural: 'jobs', categories: 'all', sub: 'status', fields: 'status.successful' },
    { kind: 'CronJob', plural: 'cronjobs', short: 'cj', categories: 'all', sub: 'status' },
  ]),
  ...kindsOf('discovery.k8s.io/v1', [{ kind: 'EndpointSlice', plural: 'endpointslices' }]),
  ...kindsOf('networking.k8s.io/v1', [
    { kind: 'Ingress', plural: 'ingresses', short: 'ing', sub: 'status' },
    { kind: 'IngressClass', plural: 'ingressclasses', cluster: true },
    { kind: 'NetworkPolicy', plural: 'networkpolicies', short: 'netpol' },
  ]),
  ...kindsOf('rbac.authorization.k8s.io/v1', [
    { kind: 'Role', plural: 'roles' },
    { kind: 'RoleBinding', plural: 'rolebindings' },
    { kind: 'ClusterRole', plural: 'clusterroles', cluster: true },
    { kind: 'ClusterRoleBinding', plural: 'clusterrolebindings', cluster: true },
  ]),
  ...kindsOf('events.k8s.io/v1', [
    {
      kind: 'Event',
      plural: 'events',
      model: 'EventsV1Event',
      fields: 'regarding.kind regarding.namespace regarding.name regarding.uid reason reportingController type',
    },
  ]),
  ...kindsOf('coordination.k8s.io/v1', [{ kind: 'Lease', plural: 'leases' }]),
  ...kindsOf('authentication.k8s.io/v1', [
    { kind: 'TokenReview', plural: 'tokenreviews', cluster: true, virtual: true },
    { kind: 'SelfSubjectReview', plural: 'selfsubjectreviews', cluster: true, virtual: true },
  ]),
  ...kindsOf('authorization.k8s.io/v1', [
    { kind: 'SubjectAccessReview', plural: 'subjectaccessreviews', cluster: true, virtual: true },
    { kind: 'LocalSubjectAccessReview', plural: 'localsubjectaccessreviews', virtual: true },
    { kind: 'SelfSubjectAccessReview', plural: 'selfsubjectaccessreviews', cluster: true, virtual: true },
    { kind: 'SelfSubjectRulesReview', plural: 'selfsubjectrulesreviews', cluster: true, virtual: true },
  ]),
  ...kindsOf('certificates.k8s.io/v1', [
    {
      kind: 'CertificateSigningRequest',
      plural: 'certificatesigningrequests',
      short: 'csr',
      cluster: true,
      sub: 'status approval',
      fields: 'spec.signerName',
    },
  ]),
  ...['v1beta1', 'v1alpha1'].flatMap((version) =>
    kindsOf(`certificates.k8s.io/${version}`, [
      { kind: 'ClusterTrustBundle', plural: 'clustertrustbundles', cluster: true, fields: 'spec.signerName' },
    ]),
  ),
  ...kindsOf('admissionregistration.k8s.io/v1', [
    {
      kind: 'MutatingWebhookConfiguration',
      plural: 'mutatingwebhookconfigurations',
      cluster: true,
      categories: 'api-extensions',
    },
    {
      kind: 'ValidatingWebhookConfiguration',
      plural: 'validatingwebhookconfigurations',
      cluster: true,
      categories: 'api-extensions',
    },
  ]),
  ...kindsOf('apiextensions.k8s.io/v1', [
    {
      kind: 'CustomResourceDefinition',
      plural: 'customresourcedefinitions',
      short: 'crd crds',
      cluster: true,
      categories: 'api-extensions',
      sub: 'status',
    },
  ]),
  ...kindsOf('policy/v1', [
    { kind: 'PodDisruptionBudget', plural: 'poddisruptionbudgets', short: 'pdb', sub: 'status' },
  ]),
  ...kindsOf('autoscaling/v2', [
    {
      kind: 'HorizontalPodAutoscaler',
      plural: 'horizontalpodautoscalers',
      short: 'hpa',
      categories: 'all',
      sub: 'status',
    },
  ]),
  ...kindsOf('storage.k8s.io/v1', [
    { kind: 'StorageClass', plural: 'storageclasses', short: 'sc', cluster: true },
    { kind: 'CSIDriver', plural: 'csidrivers', cluster: true },
    { kind: 'CSINode', plural: 'csinodes', cluster: true },
    { kind: 'VolumeAttachment', plural: 'volumeattachments', cluster: true, sub: 'status' },
  ]),
  ...kindsOf('scheduling.k8s.io/v1', [
    { kind: 'PriorityClass', plural: 'priorityclasses', short: 'pc', cluster: true },
  ]),
]
