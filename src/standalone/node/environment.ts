// The environment variables of a container.

import { expandReferences } from './expand.ts'
import type { ConfigMap, Container, Pod, Secret, Service } from './types.ts'

export interface EnvironmentSources {
  readonly pod: Pod
  readonly nodeName: string
  readonly hostIPs: readonly string[]
  readonly podIPs: readonly string[]
  configMap(name: string): ConfigMap | undefined
  secret(name: string): Secret | undefined
  /** Services of the pod's namespace, and `default/kubernetes`. */
  readonly services: readonly Service[]
  readonly resources: { readonly cpus: number; readonly memoryBytes: number }
}

/** A variable whose source is missing: the container cannot start until it appears. */
export class ConfigError extends Error {
  readonly code = 'CreateContainerConfigError'
}

/** The container's variables: services first, then `envFrom`, then `env` in order. @throws ConfigError when a required source is missing. */
export function containerEnvironment(container: Container, sources: EnvironmentSources): Map<string, string> {
  const variables = serviceVariables(sources)
  for (const from of container.envFrom ?? []) {
    const ref = from.configMapRef ?? from.secretRef
    if (ref?.name === undefined) continue
    const entries = from.configMapRef ? sources.configMap(ref.name)?.data : decodedSecret(sources.secret(ref.name))
    if (entries === undefined && ref.optional !== true && !exists(from.configMapRef !== undefined, ref.name, sources)) {
      throw new ConfigError(`${from.configMapRef ? 'configmap' : 'secret'} "${ref.name}" not found`)
    }
    for (const [key, value] of Object.entries(entries ?? {})) variables.set(`${from.prefix ?? ''}${key}`, value)
  }
  const declared = new Map(variables)
  for (const variable of container.env ?? []) {
    const value =
      variable.valueFrom === undefined
        ? expandReferences(variable.value ?? '', declared)
        : referencedValue(variable.valueFrom, container, sources)
    if (value === undefined) continue
    declared.set(variable.name, value)
  }
  return declared
}

type ValueFrom = NonNullable<NonNullable<Container['env']>[number]['valueFrom']>

function referencedValue(from: ValueFrom, container: Container, sources: EnvironmentSources): string | undefined {
  if (from.fieldRef) return podField(from.fieldRef.fieldPath, sources)
  if (from.resourceFieldRef) return resourceValue(from.resourceFieldRef, container, sources.resources)
  const ref = from.configMapKeyRef ?? from.secretKeyRef
  if (ref === undefined) return undefined
  const name = ref.name ?? ''
  const entries = from.configMapKeyRef ? sources.configMap(name)?.data : decodedSecret(sources.secret(name))
  const value = entries?.[ref.key]
  if (value !== undefined || ref.optional === true) return value
  const kind = from.configMapKeyRef ? 'ConfigMap' : 'Secret'
  const there = exists(from.configMapKeyRef !== undefined, name, sources)
  const namespace = sources.pod.metadata.namespace
  throw new ConfigError(
    there
      ? `couldn't find key ${ref.key} in ${kind} ${namespace}/${name}`
      : `${kind.toLowerCase()} "${name}" not found`,
  )
}

function exists(isConfigMap: boolean, name: string, sources: EnvironmentSources): boolean {
  return (isConfigMap ? sources.configMap(name) : sources.secret(name)) !== undefined
}

function decodedSecret(secret: Secret | undefined): Record<string, string> | undefined {
  if (secret === undefined) return undefined
  return Object.fromEntries(
    Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]),
  )
}

/** A field of the pod as `fieldRef.fieldPath` names it, as text; undefined for a field that does not exist. */
export function podField(
  path: string,
  sources: Pick<EnvironmentSources, 'pod' | 'nodeName' | 'hostIPs' | 'podIPs'>,
): string | undefined {
  const { metadata, spec } = sources.pod
  const subscript = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path)
  if (subscript) return metadata[subscript[1] as 'labels' | 'annotations']?.[subscript[2] ?? ''] ?? ''
  switch (path) {
    case 'metadata.name':
      return metadata.name
    case 'metadata.namespace':
      return metadata.namespace ?? ''
    case 'metadata.uid':
      return metadata.uid ?? ''
    case 'metadata.labels':
      return quotedPairs(metadata.labels)
    case 'metadata.annotations':
      return quotedPairs(metadata.annotations)
    case 'spec.nodeName':
      return sources.nodeName
    case 'spec.serviceAccountName':
      return spec?.serviceAccountName ?? 'default'
    case 'status.hostIP':
      return sources.hostIPs[0] ?? ''
    case 'status.hostIPs':
      return sources.hostIPs.join(',')
    case 'status.podIP':
      return sources.podIPs[0] ?? ''
    case 'status.podIPs':
      return sources.podIPs.join(',')
    default:
      return undefined
  }
}

function quotedPairs(pairs: Readonly<Record<string, string>> | undefined): string {
  return Object.entries(pairs ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join('\n')
}

/** The value of `resourceFieldRef`: the container's request or limit, the machine's capacity where it sets no limit, in units of the divisor, rounded up. */
export function resourceValue(
  ref: { readonly resource: string; readonly divisor?: string },
  container: Container,
  machine: EnvironmentSources['resources'],
): string {
  const [kind = '', name = ''] = ref.resource.split('.')
  const declared = kind === 'limits' || kind === 'requests' ? container.resources?.[kind]?.[name] : undefined
  const fallback = kind === 'limits' ? { cpu: machine.cpus, memory: machine.memoryBytes }[name] : 0
  const amount = declared === undefined ? (fallback ?? 0) : parseQuantity(declared)
  const divisor = parseQuantity(ref.divisor ?? '1') || 1
  return String(Math.ceil(amount / divisor - 1e-9))
}

const suffixes: Readonly<Record<string, number>> = {
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
}

/** A Kubernetes quantity (`500m`, `1.5`, `128Mi`) as a number; NaN when it is none. */
export function parseQuantity(text: string): number {
  const match = /^([+-]?[0-9.]+(?:[eE][+-]?\d+)?)(Ki|Mi|Gi|Ti|Pi|Ei|[mkMGTPE])?$/.exec(String(text))
  return match ? Number(match[1]) * (suffixes[match[2] ?? ''] ?? 1) : Number.NaN
}

function serviceVariables(sources: EnvironmentSources): Map<string, string> {
  const variables = new Map<string, string>()
  const links = sources.pod.spec?.enableServiceLinks !== false
  for (const service of sources.services) {
    const { name, namespace } = service.metadata
    const isApi = namespace === 'default' && name === 'kubernetes'
    if (!isApi && (!links || namespace !== sources.pod.metadata.namespace)) continue
    const ip = service.spec?.clusterIP
    const ports = service.spec?.ports ?? []
    const [first] = ports
    if (ip === undefined || ip === '' || ip === 'None' || first === undefined) continue
    const prefix = name.toUpperCase().replaceAll('-', '_')
    variables.set(`${prefix}_SERVICE_HOST`, ip)
    variables.set(`${prefix}_SERVICE_PORT`, String(first.port))
    for (const port of ports) {
      if (port.name) {
        variables.set(`${prefix}_SERVICE_PORT_${port.name.toUpperCase().replaceAll('-', '_')}`, String(port.port))
      }
    }
  }
  return variables
}
