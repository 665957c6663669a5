// How lists of the built-in kinds are merged by strategic merge patch and by server-side apply.
import type { Schema } from './kind.ts'

type MergeRule = Pick<
  Schema,
  | 'x-kubernetes-patch-strategy'
  | 'x-kubernetes-patch-merge-key'
  | 'x-kubernetes-list-type'
  | 'x-kubernetes-list-map-keys'
  | 'x-kubernetes-map-type'
>

/** Elements merged by one key in patches, and by `keys` (the same one by default) in apply. */
function keyed(key: string, keys: readonly string[] = [key], strategy = 'merge'): MergeRule {
  return {
    'x-kubernetes-patch-strategy': strategy,
    'x-kubernetes-patch-merge-key': key,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': keys,
  }
}
const set: MergeRule = { 'x-kubernetes-patch-strategy': 'merge', 'x-kubernetes-list-type': 'set' }
const conditions = keyed('type')
const atomicMap: MergeRule = { 'x-kubernetes-map-type': 'atomic' }
const container = (model: string): Record<string, MergeRule> => ({
  [`${model}.ports`]: keyed('containerPort', ['containerPort', 'protocol']),
  [`${model}.env`]: keyed('name'),
  [`${model}.volumeMounts`]: keyed('mountPath'),
  [`${model}.volumeDevices`]: keyed('devicePath'),
})

/** By `<model of client-node>.<field>`. */
export const mergeKeys: Readonly<Record<string, MergeRule>> = {
  'V1ObjectMeta.finalizers': set,
  'V1ObjectMeta.ownerReferences': keyed('uid'),
  ...container('V1Container'),
  ...container('V1EphemeralContainer'),
  'V1PodSpec.volumes': keyed('name', ['name'], 'merge,retainKeys'),
  'V1PodSpec.containers': keyed('name'),
  'V1PodSpec.initContainers': keyed('name'),
  'V1PodSpec.ephemeralContainers': keyed('name'),
  'V1PodSpec.imagePullSecrets': keyed('name'),
  'V1PodSpec.hostAliases': keyed('ip'),
  'V1PodSpec.topologySpreadConstraints': keyed('topologyKey', ['topologyKey', 'whenUnsatisfiable']),
  'V1PodSpec.resourceClaims': keyed('name', ['name'], 'merge,retainKeys'),
  'V1PodSpec.schedulingGates': keyed('name'),
  'V1PodSpec.nodeSelector': atomicMap,
  'V1PodStatus.conditions': conditions,
  'V1PodStatus.podIPs': keyed('ip'),
  'V1PodStatus.hostIPs': { ...keyed('ip'), 'x-kubernetes-list-type': 'atomic' },
  'V1NodeSpec.podCIDRs': set,
  'V1NodeStatus.conditions': conditions,
  'V1NodeStatus.addresses': keyed('type'),
  'V1ServiceSpec.ports': keyed('port', ['port', 'protocol']),
  'V1ServiceSpec.selector': atomicMap,
  'V1ServiceStatus.conditions': conditions,
  'V1ServiceAccount.secrets': keyed('name'),
  'V1NamespaceStatus.conditions': conditions,
  'V1PersistentVolumeClaimStatus.conditions': conditions,
  'V1ReplicationControllerStatus.conditions': conditions,
  'V1DeploymentSpec.strategy': { 'x-kubernetes-patch-strategy': 'retainKeys' },
  'V1DeploymentStatus.conditions': conditions,
  'V1ReplicaSetStatus.conditions': conditions,
  'V1StatefulSetStatus.conditions': conditions,
  'V1DaemonSetStatus.conditions': conditions,
  'V1JobStatus.conditions': conditions,
  'V1PodDisruptionBudgetStatus.conditions': conditions,
  'V2HorizontalPodAutoscalerStatus.conditions': conditions,
  'V1CertificateSigningRequestStatus.conditions': {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
  },
  'V1CustomResourceDefinitionStatus.conditions': {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
  },
  'V1MutatingWebhookConfiguration.webhooks': keyed('name'),
  'V1ValidatingWebhookConfiguration.webhooks': keyed('name'),
  'V1NodeSelectorTerm.matchExpressions': { 'x-kubernetes-list-type': 'atomic' },
}
