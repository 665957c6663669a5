// Validation of the built-in kinds beyond their schema: what the other parts of the system rely on.
import { isIP } from 'node:net'
import { duplicate, immutable, invalidValue, isSame, notSupported, required } from './causes.ts'
import { validateTrustBundle } from './cluster-trust-bundle.ts'
import type { Cause } from './kind.ts'
import {
  dns1035LabelFault,
  dnsLabelFault,
  dnsSubdomainFault,
  labelKeyFault,
  labelValueFault,
  pathSegmentFault,
} from './names.ts'
import type { KubeObject } from './objects.ts'
import { objectIn, objectsIn } from './pod-defaults.ts'
import { portFault, validatePodSpec, validatePodUpdate } from './pod-validation.ts'

type Fields = Record<string, unknown>
type Validation = (spec: Fields, object: KubeObject, old: KubeObject | undefined) => Cause[]

/** What is wrong with an object of a built-in kind whose shape its schema has approved. */
export function validateKubernetesObject(group: string, object: KubeObject, old?: KubeObject): Cause[] {
  const key = `${group}/${object.kind}`
  const causes = nameFaults(key, object.metadata.name)
  const validation = validations[key]
  if (validation === undefined) return causes
  return [...causes, ...validation(objectIn(fieldsOf(object), 'spec') ?? {}, object, old)]
}

const fieldsOf = (object: KubeObject): Fields => object as unknown as Fields
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const specOf = (object: KubeObject | undefined): Fields =>
  object === undefined ? {} : (objectIn(fieldsOf(object), 'spec') ?? {})

const nameRules: Readonly<Record<string, (name: string) => string | undefined>> = {
  '/Namespace': dnsLabelFault,
  '/Service': dns1035LabelFault,
  // Depends on the signer: checked with it.
  'certificates.k8s.io/ClusterTrustBundle': () => undefined,
  'rbac.authorization.k8s.io/Role': pathSegmentFault,
  'rbac.authorization.k8s.io/RoleBinding': pathSegmentFault,
  'rbac.authorization.k8s.io/ClusterRole': pathSegmentFault,
  'rbac.authorization.k8s.io/ClusterRoleBinding': pathSegmentFault,
}

function nameFaults(key: string, name: string): Cause[] {
  const fault = (nameRules[key] ?? dnsSubdomainFault)(name)
  return fault === undefined ? [] : [invalidValue('metadata.name', name, fault)]
}

/** The labels that a selector asks for, as far as they are plain. */
function validateSelector(selector: Fields, path: string): Cause[] {
  const causes: Cause[] = []
  for (const [key, value] of Object.entries(objectIn(selector, 'matchLabels') ?? {})) {
    const fault = labelKeyFault(key) ?? labelValueFault(textOf(value))
    if (fault !== undefined) causes.push(invalidValue(`${path}.matchLabels`, key, fault))
  }
  objectsIn(selector, 'matchExpressions').forEach((expression, index) => {
    const operators = ['In', 'NotIn', 'Exists', 'DoesNotExist']
    const at = `${path}.matchExpressions[${index}]`
    const count = Array.isArray(expression.values) ? expression.values.length : 0
    const takesValues = expression.operator === 'In' || expression.operator === 'NotIn'
    if (!operators.includes(textOf(expression.operator))) {
      causes.push(invalidValue(`${at}.operator`, expression.operator, 'not a valid selector operator'))
    } else if (takesValues && count === 0) {
      causes.push(required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
    }
  })
  return causes
}

function matches(selector: Fields, labels: Fields): boolean {
  return (
    Object.entries(objectIn(selector, 'matchLabels') ?? {}).every(([key, value]) => labels[key] === value) &&
    objectsIn(selector, 'matchExpressions').every((expression) => {
      const values = Array.isArray(expression.values) ? expression.values : []
      const value = labels[textOf(expression.key)]
      switch (expression.operator) {
        case 'In':
          return values.includes(value)
        case 'NotIn':
          return !values.includes(value)
        case 'Exists':
          return value !== undefined
        default:
          return value === undefined
      }
    })
  )
}

function validateWorkload(restartPolicies: string[], immutableFields: readonly string[]): Validation {
  return (spec, _, old) => {
    const causes: Cause[] = []
    const template = objectIn(spec, 'template') ?? {}
    const podSpec = objectIn(template, 'spec') ?? {}
    const selector = objectIn(spec, 'selector')
    const labels = objectIn(objectIn(template, 'metadata') ?? {}, 'labels') ?? {}
    if (typeof spec.replicas === 'number' && spec.replicas < 0) {
      causes.push(invalidValue('spec.replicas', spec.replicas, 'must be greater than or equal to 0'))
    }
    if (selector === undefined) causes.push(required('spec.selector'))
    else {
      causes.push(...validateSelector(selector, 'spec.selector'))
      const count =
        Object.keys(objectIn(selector, 'matchLabels') ?? {}).length + objectsIn(selector, 'matchExpressions').length
      if (count === 0) {
        causes.push(invalidValue('spec.selector', selector, 'empty selector is invalid for this kind'))
      } else if (!matches(selector, labels)) {
        const why = '`selector` does not match template `labels`'
        causes.push(invalidValue('spec.template.metadata.labels', labels, why))
      }
    }
    causes.push(...validatePodSpec(podSpec, 'spec.template.spec', restartPolicies))
    if (old !== undefined) {
      for (const field of immutableFields) causes.push(...immutable(`spec.${field}`, spec[field], specOf(old)[field]))
    }
    return causes
  }
}

const validateJob: Validation = (spec, object, old) => {
  const causes: Cause[] = []
  const podSpec = objectIn(objectIn(spec, 'template') ?? {}, 'spec') ?? {}
  for (const name of [
    'parallelism',
    'completions',
    'backoffLimit',
    'activeDeadlineSeconds',
    'ttlSecondsAfterFinished',
  ]) {
    const value = spec[name]
    if (typeof value === 'number' && value < 0) {
      causes.push(invalidValue(`spec.${name}`, value, 'must be greater than or equal to 0'))
    }
  }
  if (podSpec.restartPolicy === 'Always') {
    causes.push(notSupported('spec.template.spec.restartPolicy', 'Always', ['Never', 'OnFailure']))
  } else causes.push(...validatePodSpec(podSpec, 'spec.template.spec', ['OnFailure', 'Never']))
  if (old !== undefined && object.metadata.deletionTimestamp === undefined) {
    for (const field of ['selector', 'template', 'completions', 'completionMode']) {
      causes.push(...immutable(`spec.${field}`, spec[field], specOf(old)[field]))
    }
  }
  return causes
}

const validateService: Validation = (spec, _, old) => {
  const causes: Cause[] = []
  const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']
  if (!types.includes(textOf(spec.type))) causes.push(notSupported('spec.type', spec.type, types))
  if (spec.type === 'ExternalName') {
    const fault = dnsSubdomainFault(textOf(spec.externalName).replace(/\.$/, ''))
    if (fault !== undefined) causes.push(invalidValue('spec.externalName', spec.externalName ?? '', fault))
  }
  const ports = objectsIn(spec, 'ports')
  if (ports.length === 0 && spec.clusterIP !== 'None' && spec.type !== 'ExternalName')
    causes.push(required('spec.ports'))
  const [names, numbers] = [new Set<string>(), new Set<string>()]
  ports.forEach((port, index) => {
    const at = `spec.ports[${index}]`
    const name = textOf(port.name)
    if (name === '' && ports.length > 1) causes.push(required(`${at}.name`))
    const nameFault = name === '' ? undefined : dnsLabelFault(name)
    if (nameFault !== undefined) causes.push(invalidValue(`${at}.name`, name, nameFault))
    if (name !== '' && names.has(name)) causes.push(duplicate(`${at}.name`, name))
    names.add(name)
    const fault = portFault(port.port)
    if (fault !== undefined) causes.push(invalidValue(`${at}.port`, port.port, fault))
    if (typeof port.targetPort === 'number' && portFault(port.targetPort) !== undefined) {
      causes.push(invalidValue(`${at}.targetPort`, port.targetPort, 'must be between 1 and 65535, inclusive'))
    }
    if (!['TCP', 'UDP', 'SCTP'].includes(textOf(port.protocol))) {
      causes.push(notSupported(`${at}.protocol`, port.protocol, ['SCTP', 'TCP', 'UDP']))
    }
    const key = `${String(port.port)}/${textOf(port.protocol)}`
    if (numbers.has(key)) causes.push(duplicate(at, { port: port.port, protocol: port.protocol }))
    numbers.add(key)
  })
  for (const [key, value] of Object.entries(objectIn(spec, 'selector') ?? {})) {
    const fault = labelKeyFault(key) ?? labelValueFault(textOf(value))
    if (fault !== undefined) causes.push(invalidValue('spec.selector', key, fault))
  }
  const ip = textOf(spec.clusterIP)
  if (ip !== '' && ip !== 'None' && isIP(ip) === 0) {
    causes.push(invalidValue('spec.clusterIPs[0]', ip, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'))
  }
  const before = specOf(old)
  const keepsIp = before.type !== 'ExternalName' && spec.type !== 'ExternalName'
  if (old !== undefined && keepsIp && textOf(before.clusterIP) !== '' && before.clusterIP !== spec.clusterIP) {
    causes.push(...immutable('spec.clusterIPs[0]', spec.clusterIP, before.clusterIP))
  }
  return causes
}

const validateConfig: Validation = (_, object, old) => {
  const config = fieldsOf(object)
  const causes: Cause[] = []
  for (const field of ['data', 'binaryData']) {
    for (const key of Object.keys(objectIn(config, field) ?? {})) {
      if (!/^[-._a-zA-Z0-9]{1,253}$/.test(key) || key === '.' || key === '..') {
        const why = `a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`
        causes.push(invalidValue(`${field}[${key}]`, key, why))
      }
    }
  }
  if (old === undefined) return causes
  const before = fieldsOf(old)
  if (object.kind === 'Secret') causes.push(...immutable('type', config.type, before.type))
  if (
    before.immutable === true &&
    !(isSame(config.data, before.data) && isSame(config.binaryData, before.binaryData))
  ) {
    causes.push({
      reason: 'FieldValueForbidden',
      field: 'data',
      message: 'Forbidden: field is immutable when `immutable` is set',
    })
  }
  return causes
}

const validateRoleBinding: Validation = (_, object, old) => {
  const binding = fieldsOf(object)
  const roleRef = objectIn(binding, 'roleRef') ?? {}
  const causes: Cause[] = []
  const kinds = object.kind === 'RoleBinding' ? ['Role', 'ClusterRole'] : ['ClusterRole']
  if (!kinds.includes(textOf(roleRef.kind))) causes.push(notSupported('roleRef.kind', roleRef.kind, kinds))
  if (textOf(roleRef.name) === '') causes.push(required('roleRef.name'))
  objectsIn(binding, 'subjects').forEach((subject, index) => {
    if (textOf(subject.name) === '') causes.push(required(`subjects[${index}].name`))
    if (!['User', 'Group', 'ServiceAccount'].includes(textOf(subject.kind))) {
      causes.push(notSupported(`subjects[${index}].kind`, subject.kind, ['ServiceAccount', 'User', 'Group']))
    }
    if (subject.kind === 'ServiceAccount' && textOf(subject.namespace) === '') {
      causes.push(required(`subjects[${index}].namespace`))
    }
  })
  if (old !== undefined && !isSame(roleRef, fieldsOf(old).roleRef)) {
    causes.push(invalidValue('roleRef', roleRef, 'cannot change roleRef'))
  }
  return causes
}

const validateEndpointSlice: Validation = (_, object, old) => {
  const slice = fieldsOf(object)
  const causes: Cause[] = []
  const families: Record<string, number> = { IPv4: 4, IPv6: 6 }
  const type = textOf(slice.addressType)
  if (!['IPv4', 'IPv6', 'FQDN'].includes(type)) causes.push(notSupported('addressType', type, ['FQDN', 'IPv4', 'IPv6']))
  objectsIn(slice, 'endpoints').forEach((endpoint, index) => {
    const addresses = Array.isArray(endpoint.addresses) ? endpoint.addresses : []
    if (addresses.length === 0)
      causes.push(required(`endpoints[${index}].addresses`, 'must contain at least 1 address'))
    addresses.forEach((address, at) => {
      if (families[type] !== undefined && isIP(textOf(address)) !== families[type]) {
        const why = `must be a valid ${type} address`
        causes.push(invalidValue(`endpoints[${index}].addresses[${at}]`, address, why))
      }
    })
  })
  if (old !== undefined) causes.push(...immutable('addressType', type, fieldsOf(old).addressType))
  return causes
}

const validateWebhooks: Validation = (_, object) => {
  const causes: Cause[] = []
  objectsIn(fieldsOf(object), 'webhooks').forEach((webhook, index) => {
    const at = `webhooks[${index}]`
    const client = objectIn(webhook, 'clientConfig') ?? {}
    const targets = [client.url, client.service].filter((target) => target !== undefined)
    if (targets.length !== 1) causes.push(required(`${at}.clientConfig`, 'exactly one of url or service is required'))
    if (typeof client.url === 'string' && !client.url.startsWith('https://')) {
      causes.push(invalidValue(`${at}.clientConfig.url`, client.url, "'https' is the only allowed URL scheme"))
    }
    if (textOf(webhook.name).split('.').length < 3) {
      const why = 'should be a domain with at least three segments separated by dots'
      causes.push(invalidValue(`${at}.name`, webhook.name, why))
    }
    const timeout = webhook.timeoutSeconds
    if (typeof timeout === 'number' && (timeout < 1 || timeout > 30)) {
      causes.push(invalidValue(`${at}.timeoutSeconds`, timeout, 'the timeout value must be between 1 and 30 seconds'))
    }
    if (!['None', 'NoneOnDryRun'].includes(textOf(webhook.sideEffects))) {
      causes.push(notSupported(`${at}.sideEffects`, webhook.sideEffects, ['None', 'NoneOnDryRun']))
    }
    const versions = Array.isArray(webhook.admissionReviewVersions) ? webhook.admissionReviewVersions : []
    if (!versions.some((version) => version === 'v1' || version === 'v1beta1')) {
      const why = 'must include at least one of v1, v1beta1'
      causes.push(invalidValue(`${at}.admissionReviewVersions`, versions, why))
    }
  })
  return causes
}

const validateClusterTrustBundle: Validation = (_, object, old) => {
  const bundleOf = (of: KubeObject) => {
    const { signerName, trustBundle } = specOf(of)
    return { name: of.metadata.name, signerName, trustBundle }
  }
  return validateTrustBundle(bundleOf(object), old === undefined ? undefined : bundleOf(old))
}

const validatePod: Validation = (spec, _, old) =>
  old === undefined ? validatePodSpec(spec, 'spec') : validatePodUpdate(spec, specOf(old))

const validations: Readonly<Record<string, Validation>> = {
  '/Pod': validatePod,
  '/Service': validateService,
  '/ConfigMap': validateConfig,
  '/Secret': validateConfig,
  'apps/Deployment': validateWorkload(['Always'], ['selector']),
  'apps/ReplicaSet': validateWorkload(['Always'], ['selector']),
  'apps/DaemonSet': validateWorkload(['Always'], ['selector']),
  'apps/StatefulSet': validateWorkload(['Always'], ['selector', 'serviceName', 'podManagementPolicy']),
  'batch/Job': validateJob,
  'certificates.k8s.io/ClusterTrustBundle': validateClusterTrustBundle,
  'discovery.k8s.io/EndpointSlice': validateEndpointSlice,
  'rbac.authorization.k8s.io/RoleBinding': validateRoleBinding,
  'rbac.authorization.k8s.io/ClusterRoleBinding': validateRoleBinding,
  'admissionregistration.k8s.io/MutatingWebhookConfiguration': validateWebhooks,
  'admissionregistration.k8s.io/ValidatingWebhookConfiguration': validateWebhooks,
}
