// The plugin's entry in the node's network configuration: where it goes and how it gets there. Pure: text in, text out.
import type { AgentSettings } from '../settings.ts'

type Json = Record<string, unknown>

export const pluginType = 'istio-cni'

/** A configuration that can't be extended. */
export class NetworkConfigError extends Error {
  readonly code = 'INVALID_NETWORK_CONFIG'
}

/** The plugin's entry, keys in the order in which they are written when it stands alone. */
export function pluginEntry(settings: AgentSettings): Json {
  return {
    cniVersion: '0.3.1',
    name: 'istio-cni',
    type: pluginType,
    ipam: {},
    dns: {},
    plugin_log_level: settings.pluginLogLevel,
    cni_agent_run_dir: settings.agentRunDir,
    ambient_enabled: settings.ambientEnabled,
    enablement_selectors: settings.selectors,
    exclude_namespaces: settings.excludeNamespaces,
    pod_namespace: settings.podNamespace,
    native_nftables: settings.nativeNftables,
    enable_ambient_detection_retry: settings.retryAmbientDetection,
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parseObject(text: string, file: string): Json {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new NetworkConfigError(`${file}: ${(error as Error).message}`)
  }
  if (!isObject(value)) throw new NetworkConfigError(`${file}: expected a JSON object`)
  return value
}

/** Whether a runtime would use the file: a single plugin in a .conf, a named list in a .conflist. */
export function isValidNetworkConfig(file: string, text: string): boolean {
  try {
    const config = parseObject(text, file)
    if (file.endsWith('.conf')) return typeof config.type === 'string' && config.type !== ''
    return (
      typeof config.name === 'string' &&
      config.name !== '' &&
      Array.isArray(config.plugins) &&
      config.plugins.length > 0
    )
  } catch {
    return false
  }
}

/** Puts the entry at the end of an existing configuration; a single plugin becomes a list. Throws a NetworkConfigError. */
export function insertPlugin(text: string, file: string, entry: Json): string {
  const { cniVersion: _version, ...own } = entry
  const config = parseObject(text, file)
  if (typeof config.type === 'string') {
    const { cniVersion: _old, ...other } = config
    return render({ name: 'k8s-pod-network', cniVersion: '0.3.1', plugins: [other, own] })
  }
  return render({ ...config, plugins: [...withoutOwn(config, file), own] })
}

/** Takes the entry out of a list; undefined when it holds none. */
export function removePlugin(text: string, file: string): string | undefined {
  const config = parseObject(text, file)
  if (!Array.isArray(config.plugins)) return undefined
  const others = withoutOwn(config, file)
  return others.length === config.plugins.length ? undefined : render({ ...config, plugins: others })
}

function withoutOwn(config: Json, file: string): Json[] {
  if (!Array.isArray(config.plugins)) throw new NetworkConfigError(`${file}: plugins: expected a list`)
  if (!config.plugins.every(isObject)) throw new NetworkConfigError(`${file}: plugins: expected objects`)
  const at = config.plugins.findIndex(({ type }) => type === pluginType)
  return config.plugins.filter((_plugin, index) => index !== at)
}

/** Whether the file holds the wanted entry. */
export function holdsEntry(text: string, file: string, entry: Json): boolean {
  const { cniVersion: _version, ...own } = entry
  try {
    const config = parseObject(text, file)
    const found = (config.plugins as Json[] | undefined)?.find((one) => isObject(one) && one.type === pluginType)
    return found !== undefined && render(found) === render(own)
  } catch {
    return false
  }
}

/** JSON with sorted keys, two blanks a level, and a final newline. */
function render(value: Json): string {
  return `${JSON.stringify(sorted(value), undefined, 2)}\n`
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  )
}
