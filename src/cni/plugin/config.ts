// What the container runtime hands the plugin: the network configuration on stdin, CNI_* in the environment.
import { type EnablementSelector, enablementSelectorProblem } from '../eligibility.ts'

export const supportedVersions = ['0.1.0', '0.2.0', '0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] as const

/** The plugin's entry in the network configuration. */
export interface PluginConfig {
  readonly cniVersion: string
  readonly agentRunDir: string
  readonly ambientEnabled: boolean
  readonly selectors: readonly EnablementSelector[]
  readonly excludeNamespaces: readonly string[]
  /** Namespace of the node agent's own pods. */
  readonly podNamespace: string
  readonly retryAmbientDetection: boolean
  readonly logLevel: string
  /** The result of the plugins before this one, as given. */
  readonly prevResult?: Readonly<Record<string, unknown>>
}

/** A failure as CNI reports it: printed on stdout as `{cniVersion, code, msg, details}`. */
export class CniError extends Error {
  readonly code: number
  readonly details: string
  constructor(message: string, code = 999, details = '') {
    super(message)
    this.name = 'CniError'
    this.code = code
    this.details = details
  }
}

export const defaultRunDir = '/var/run/istio-cni'

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Reads the network configuration. Throws a CniError. */
export function parsePluginConfig(stdin: string): PluginConfig {
  let json: unknown
  try {
    json = JSON.parse(stdin)
  } catch (error) {
    throw new CniError(`failed to parse network configuration: ${(error as Error).message}`, 6)
  }
  if (!isRecord(json)) throw new CniError('failed to parse network configuration: expected an object', 6)
  const text = (key: string, fallback: string): string => {
    const value = json[key]
    if (value === undefined || value === null) return fallback
    if (typeof value !== 'string') throw wrongType(key, 'a string')
    return value
  }
  const flag = (key: string): boolean => {
    const value = json[key] ?? false
    if (typeof value !== 'boolean') throw wrongType(key, 'true or false')
    return value
  }
  const cniVersion = text('cniVersion', '0.1.0')
  if (!(supportedVersions as readonly string[]).includes(cniVersion)) {
    throw new CniError(
      `incompatible CNI versions: config is "${cniVersion}", plugin supports ${JSON.stringify(supportedVersions)}`,
      1,
    )
  }
  const prevResult = json.prevResult ?? undefined
  if (prevResult !== undefined && !isRecord(prevResult)) throw wrongType('prevResult', 'an object')
  return {
    cniVersion,
    agentRunDir: text('cni_agent_run_dir', '') || defaultRunDir,
    ambientEnabled: flag('ambient_enabled'),
    selectors: selectors(json.enablement_selectors),
    excludeNamespaces: list(
      json.exclude_namespaces,
      'exclude_namespaces',
      (one) => typeof one === 'string',
    ) as string[],
    podNamespace: text('pod_namespace', ''),
    retryAmbientDetection: flag('enable_ambient_detection_retry'),
    logLevel: text('plugin_log_level', 'info'),
    ...(prevResult === undefined ? {} : { prevResult }),
  }
}

function wrongType(key: string, expected: string): CniError {
  return new CniError(`failed to parse network configuration: ${key}: expected ${expected}`, 6)
}

function selectors(value: unknown): EnablementSelector[] {
  const found = list(value, 'enablement_selectors', () => true)
  for (const [index, one] of found.entries()) {
    const problem = enablementSelectorProblem(one)
    if (problem !== undefined)
      throw new CniError(`failed to parse network configuration: enablement_selectors[${index}]: ${problem}`, 6)
  }
  return found as EnablementSelector[]
}

function list(value: unknown, key: string, isElement: (one: unknown) => boolean): unknown[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value) || !value.every(isElement)) throw wrongType(key, 'a list')
  return value
}

/** The pod named by CNI_ARGS; empty strings when the runtime is not Kubernetes. */
export interface PodReference {
  readonly name: string
  readonly namespace: string
  readonly uid: string
}

const knownArgs = ['K8S_POD_NAME', 'K8S_POD_NAMESPACE', 'K8S_POD_INFRA_CONTAINER_ID', 'K8S_POD_UID']

/** Reads `KEY=VALUE;…`. Unknown keys are an error unless IgnoreUnknown says otherwise. */
export function parseCniArgs(args: string): PodReference {
  const pairs = args.split(';').filter((pair) => pair !== '')
  const values = new Map<string, string>()
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at < 0) throw new CniError(`failed to load args: ARGS: invalid pair "${pair}"`)
    values.set(pair.slice(0, at), pair.slice(at + 1))
  }
  const ignoreUnknown = ['1', 'true'].includes((values.get('IgnoreUnknown') ?? '').toLowerCase())
  const unknown = [...values.keys()].filter((key) => key !== 'IgnoreUnknown' && !knownArgs.includes(key))
  if (unknown.length > 0 && !ignoreUnknown) {
    throw new CniError(`failed to load args: ARGS: unknown args ${JSON.stringify(unknown)}`)
  }
  return {
    name: values.get('K8S_POD_NAME') ?? '',
    namespace: values.get('K8S_POD_NAMESPACE') ?? '',
    uid: values.get('K8S_POD_UID') ?? '',
  }
}
