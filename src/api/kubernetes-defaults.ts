// The defaults of the built-in kinds that clients of the API see.
import type { KubeObject } from './objects.ts'
import { defaultPodSpec, fill, objectIn, objectsIn } from './pod-defaults.ts'

type Fields = Record<string, unknown>
type Defaulting = (object: KubeObject, spec: Fields) => void

/** Sets the defaults of a built-in kind in place. */
export function applyKubernetesDefaults(object: KubeObject, group: string, kind: string): void {
  const defaulting = defaultings[`${group}/${kind}`]
  if (defaulting === undefined) return
  const spec = objectIn(fieldsOf(object), 'spec')
  defaulting(object, spec ?? {})
}

const fieldsOf = (object: KubeObject): Fields => object as unknown as Fields

function defaultTemplate(spec: Fields): void {
  const template = objectIn(spec, 'template')
  if (template === undefined) return
  const podSpec = objectIn(template, 'spec')
  if (podSpec !== undefined) defaultPodSpec(podSpec)
}

function defaultService(_: KubeObject, spec: Fields): void {
  fill(spec, { type: 'ClusterIP', sessionAffinity: 'None' })
  if (spec.sessionAffinity === 'ClientIP') {
    fill(spec, { sessionAffinityConfig: {} })
    const config = objectIn(spec, 'sessionAffinityConfig') ?? {}
    fill(config, { clientIP: {} })
    fill(objectIn(config, 'clientIP') ?? {}, { timeoutSeconds: 10800 })
  }
  for (const port of objectsIn(spec, 'ports')) {
    fill(port, { protocol: 'TCP' })
    if (spec.type !== 'ExternalName' || port.targetPort !== undefined) fill(port, { targetPort: port.port })
  }
  if (spec.type !== 'ExternalName') fill(spec, { internalTrafficPolicy: 'Cluster' })
  if (spec.type === 'NodePort' || spec.type === 'LoadBalancer') fill(spec, { externalTrafficPolicy: 'Cluster' })
  if (spec.type === 'LoadBalancer') fill(spec, { allocateLoadBalancerNodePorts: true })
}

function defaultDeployment(_: KubeObject, spec: Fields): void {
  fill(spec, { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600, strategy: {} })
  const strategy = objectIn(spec, 'strategy') ?? {}
  fill(strategy, { type: 'RollingUpdate' })
  if (strategy.type === 'RollingUpdate') {
    fill(strategy, { rollingUpdate: {} })
    fill(objectIn(strategy, 'rollingUpdate') ?? {}, { maxUnavailable: '25%', maxSurge: '25%' })
  }
  defaultTemplate(spec)
}

function defaultStatefulSet(_: KubeObject, spec: Fields): void {
  fill(spec, {
    replicas: 1,
    revisionHistoryLimit: 10,
    podManagementPolicy: 'OrderedReady',
    updateStrategy: {},
    persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
  })
  const strategy = objectIn(spec, 'updateStrategy') ?? {}
  fill(strategy, { type: 'RollingUpdate' })
  if (strategy.type === 'RollingUpdate') {
    fill(strategy, { rollingUpdate: {} })
    fill(objectIn(strategy, 'rollingUpdate') ?? {}, { partition: 0 })
  }
  defaultTemplate(spec)
}

function defaultDaemonSet(_: KubeObject, spec: Fields): void {
  fill(spec, { revisionHistoryLimit: 10, updateStrategy: {} })
  const strategy = objectIn(spec, 'updateStrategy') ?? {}
  fill(strategy, { type: 'RollingUpdate' })
  if (strategy.type === 'RollingUpdate') {
    fill(strategy, { rollingUpdate: {} })
    fill(objectIn(strategy, 'rollingUpdate') ?? {}, { maxUnavailable: 1, maxSurge: 0 })
  }
  defaultTemplate(spec)
}

/** A job finds its pods by labels that the server sets, unless the user takes the selector in his own hands. */
function defaultJob(object: KubeObject, spec: Fields): void {
  const { completions, parallelism } = spec
  if (completions === undefined && parallelism === undefined) fill(spec, { completions: 1 })
  fill(spec, {
    parallelism: 1,
    backoffLimit: 6,
    completionMode: 'NonIndexed',
    suspend: false,
    podReplacementPolicy: 'TerminatingOrFailed',
    manualSelector: false,
  })
  if (spec.manualSelector === false) delete spec.manualSelector
  defaultTemplate(spec)
  const template = objectIn(spec, 'template')
  const { uid, name } = object.metadata
  if (template === undefined || uid === undefined || spec.manualSelector === true || spec.selector !== undefined) return
  const labels = {
    'batch.kubernetes.io/controller-uid': uid,
    'batch.kubernetes.io/job-name': name,
    'controller-uid': uid,
    'job-name': name,
  }
  fill(template, { metadata: {} })
  const metadata = objectIn(template, 'metadata') ?? {}
  fill(metadata, { labels: {} })
  Object.assign(metadata.labels as Fields, labels)
  spec.selector = { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } }
}

function defaultCronJob(_: KubeObject, spec: Fields): void {
  fill(spec, { concurrencyPolicy: 'Allow', suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1 })
  const jobSpec = objectIn(objectIn(spec, 'jobTemplate') ?? {}, 'spec')
  if (jobSpec !== undefined) defaultTemplate(jobSpec)
}

function defaultPod(object: KubeObject, spec: Fields): void {
  defaultPodSpec(spec)
  fill(spec, { enableServiceLinks: true })
  const status = objectIn(fieldsOf(object), 'status')
  if (status !== undefined) fill(status, { phase: 'Pending' })
}

function defaultNamespace(object: KubeObject, spec: Fields): void {
  const labels = object.metadata.labels ?? {}
  labels['kubernetes.io/metadata.name'] = object.metadata.name
  object.metadata.labels = labels
  if (object.metadata.deletionTimestamp === undefined) fill(spec, { finalizers: ['kubernetes'] })
  object.spec = spec
  object.status ??= { phase: 'Active' }
}

function defaultSecret(object: KubeObject): void {
  const secret = fieldsOf(object)
  fill(secret, { type: 'Opaque' })
  const texts = objectIn(secret, 'stringData')
  if (texts === undefined) return
  const encoded = Object.entries(texts).map(([key, text]) => [key, Buffer.from(String(text)).toString('base64')])
  secret.data = { ...objectIn(secret, 'data'), ...Object.fromEntries(encoded) }
  delete secret.stringData
}

function defaultWebhooks(object: KubeObject): void {
  for (const webhook of objectsIn(fieldsOf(object), 'webhooks')) {
    fill(webhook, {
      failurePolicy: 'Fail',
      matchPolicy: 'Equivalent',
      timeoutSeconds: 10,
      namespaceSelector: {},
      objectSelector: {},
    })
    if (object.kind === 'MutatingWebhookConfiguration') fill(webhook, { reinvocationPolicy: 'Never' })
    for (const rule of objectsIn(webhook, 'rules')) fill(rule, { scope: '*' })
    const service = objectIn(objectIn(webhook, 'clientConfig') ?? {}, 'service')
    if (service !== undefined) fill(service, { port: 443 })
  }
}

function defaultEndpointSlice(object: KubeObject): void {
  for (const port of objectsIn(fieldsOf(object), 'ports')) fill(port, { name: '', protocol: 'TCP' })
}

function defaultBinding(object: KubeObject): void {
  const binding = fieldsOf(object)
  const roleRef = objectIn(binding, 'roleRef')
  if (roleRef !== undefined) fill(roleRef, { apiGroup: 'rbac.authorization.k8s.io' })
  for (const subject of objectsIn(binding, 'subjects')) {
    if (subject.kind !== 'ServiceAccount') fill(subject, { apiGroup: 'rbac.authorization.k8s.io' })
  }
}

function defaultCrd(_: KubeObject, spec: Fields): void {
  fill(spec, { conversion: { strategy: 'None' } })
  const names = objectIn(spec, 'names')
  if (names === undefined) return
  if (typeof names.kind === 'string') fill(names, { singular: names.kind.toLowerCase(), listKind: `${names.kind}List` })
}

function defaultNetworkPolicy(_: KubeObject, spec: Fields): void {
  const hasEgress = objectsIn(spec, 'egress').length > 0
  fill(spec, { policyTypes: hasEgress ? ['Ingress', 'Egress'] : ['Ingress'] })
  for (const rule of [...objectsIn(spec, 'ingress'), ...objectsIn(spec, 'egress')]) {
    for (const port of objectsIn(rule, 'ports')) fill(port, { protocol: 'TCP' })
  }
}

const defaultings: Readonly<Record<string, Defaulting>> = {
  '/Pod': defaultPod,
  '/Service': defaultService,
  '/Namespace': defaultNamespace,
  '/Secret': defaultSecret,
  '/Endpoints': (object) => {
    for (const subset of objectsIn(fieldsOf(object), 'subsets')) {
      for (const port of objectsIn(subset, 'ports')) fill(port, { protocol: 'TCP' })
    }
  },
  '/PodTemplate': (object) => defaultTemplate(fieldsOf(object)),
  '/ReplicationController': (_, spec) => {
    fill(spec, { replicas: 1 })
    defaultTemplate(spec)
  },
  'apps/Deployment': defaultDeployment,
  'apps/ReplicaSet': (_, spec) => {
    fill(spec, { replicas: 1 })
    defaultTemplate(spec)
  },
  'apps/StatefulSet': defaultStatefulSet,
  'apps/DaemonSet': defaultDaemonSet,
  'batch/Job': defaultJob,
  'batch/CronJob': defaultCronJob,
  'discovery.k8s.io/EndpointSlice': defaultEndpointSlice,
  'networking.k8s.io/NetworkPolicy': defaultNetworkPolicy,
  'rbac.authorization.k8s.io/RoleBinding': defaultBinding,
  'rbac.authorization.k8s.io/ClusterRoleBinding': defaultBinding,
  'admissionregistration.k8s.io/MutatingWebhookConfiguration': defaultWebhooks,
  'admissionregistration.k8s.io/ValidatingWebhookConfiguration': defaultWebhooks,
  'apiextensions.k8s.io/CustomResourceDefinition': defaultCrd,
  'autoscaling/HorizontalPodAutoscaler': (_, spec) => fill(spec, { minReplicas: 1 }),
}
