// The node agent's settings, from flags and environment: a flag `--cni-conf-name` is the variable `CNI_CONF_NAME`.
import { existsSync } from 'node:fs'
import { parse } from 'yaml'
import { ambientDefaults, parseBoolean } from '../redirect/index.ts'
import { defaultEnablementSelectors, type EnablementSelector, enablementSelectorProblem } from './eligibility.ts'

export interface AgentSettings {
  readonly mountedCniNetDir: string
  readonly mountedCniBinDir: string
  readonly cniConfName: string
  readonly chainedCniPlugin: boolean
  readonly ownedCniConfig: boolean
  readonly ownedCniConfigFilename: string
  readonly agentRunDir: string
  readonly kubeconfigMode: number
  readonly confGroupRead: boolean
  readonly kubeCaFile: string
  readonly skipTlsVerify: boolean
  readonly pluginLogLevel: string
  readonly monitoringPort: number
  readonly healthPort: number
  readonly ztunnelUdsAddress: string
  readonly ambientEnabled: boolean
  readonly retryAmbientDetection: boolean
  readonly excludeNamespaces: readonly string[]
  readonly selectors: readonly EnablementSelector[]
  readonly redirectDns: boolean
  readonly enableIpv6: boolean
  readonly reconcileOnStartup: boolean
  readonly disableSafeUpgrade: boolean
  readonly nativeNftables: boolean
  readonly forceIptablesBinary: string
  readonly nodeName: string
  readonly podNamespace: string
  readonly systemNamespace: string
  readonly probeSourceIpv4: string
  readonly probeSourceIpv6: string
  /** Where the node's root is mounted in the agent's pod: `/host`, or empty when the agent sees the node's own files. */
  readonly hostPrefix: string
  /** The node's network namespace; undefined when the agent runs in it. */
  readonly hostNetns: string | undefined
  /** Folder of the runtime's network namespaces, named by pod UID; empty when pods are found by their control groups. */
  readonly podNetnsDir: string
}

export class SettingsError extends Error {
  readonly code = 'INVALID_SETTING'
}

/** Reads the settings. Throws a SettingsError that names the variable. */
export function agentSettings(env: Readonly<Record<string, string | undefined>>): AgentSettings {
  const text = (name: string, fallback = ''): string => env[name] ?? fallback
  const flag = (name: string, fallback: boolean): boolean => {
    const value = env[name]
    if (value === undefined || value === '') return fallback
    const parsed = parseBoolean(value)
    if (parsed === undefined) throw new SettingsError(`${name}: "${value}": expected true or false`)
    return parsed
  }
  const port = (name: string, fallback: number): number => {
    const value = Number(text(name, String(fallback)))
    if (!Number.isInteger(value) || value < 0 || value > 65535)
      throw new SettingsError(`${name}: "${env[name]}": expected a port`)
    return value
  }
  const podNamespace = text('POD_NAMESPACE', 'istio-system')
  const forceIptablesBinary = text('FORCE_IPTABLES_BINARY')
  if (!['', 'legacy', 'nft'].includes(forceIptablesBinary)) {
    throw new SettingsError(`invalid FORCE_IPTABLES_BINARY value "${forceIptablesBinary}": expected legacy or nft`)
  }
  const mode = text('KUBECONFIG_MODE', '0600')
  if (!/^0?[0-7]{3}$/.test(mode))
    throw new SettingsError(`KUBECONFIG_MODE: "${mode}": expected an octal file mode such as 0600`)
  const nodeName = text('NODE_NAME') || text('KUBERNETES_NODE')
  if (nodeName === '') throw new SettingsError('NODE_NAME is not set: expected the name of the node this agent runs on')
  const hostPrefix = text('HOST_PREFIX', existsSync('/host/proc') ? '/host' : '')
  return {
    hostPrefix,
    // Only where it is asked for: elsewhere the namespace of process 1 may be that of another machine.
    hostNetns: flag('ALLOW_SWITCH_TO_HOST_NS', false) ? `${hostPrefix}/proc/1/ns/net` : undefined,
    podNetnsDir: text('POD_NETNS_DIR'),
    mountedCniNetDir: text('MOUNTED_CNI_NET_DIR', '/host/etc/cni/net.d'),
    mountedCniBinDir: text('MOUNTED_CNI_BIN_DIR', '/host/opt/cni/bin'),
    cniConfName: text('CNI_CONF_NAME'),
    chainedCniPlugin: flag('CHAINED_CNI_PLUGIN', true),
    ownedCniConfig: flag('ISTIO_OWNED_CNI_CONFIG', false),
    ownedCniConfigFilename:
      text('ISTIO_OWNED_CNI_CONFIG_FILENAME') || text('ISTIO_OWNED_CNI_CONF_FILENAME') || '02-istio-cni.conflist',
    agentRunDir: text('CNI_AGENT_RUN_DIR', '/var/run/istio-cni'),
    kubeconfigMode: Number.parseInt(mode, 8),
    confGroupRead: flag('CNI_CONF_GROUP_READ', false),
    kubeCaFile: text('KUBE_CA_FILE'),
    skipTlsVerify: flag('SKIP_TLS_VERIFY', false),
    pluginLogLevel: text('PLUGIN_LOG_LEVEL') || text('LOG_LEVEL', 'warn'),
    monitoringPort: port('MONITORING_PORT', 15014),
    healthPort: port('HEALTH_PORT', 8000),
    ztunnelUdsAddress: text('ZTUNNEL_UDS_ADDRESS', '/var/run/ztunnel/ztunnel.sock'),
    ambientEnabled: flag('AMBIENT_ENABLED', false),
    retryAmbientDetection: flag('ENABLE_AMBIENT_DETECTION_RETRY', false),
    excludeNamespaces: text('EXCLUDE_NAMESPACES')
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
    selectors: enablementSelectors(text('AMBIENT_ENABLEMENT_SELECTOR')),
    redirectDns: flag('AMBIENT_DNS_CAPTURE', false),
    enableIpv6: flag('AMBIENT_IPV6', false),
    reconcileOnStartup: flag('AMBIENT_RECONCILE_POD_RULES_ON_STARTUP', false),
    disableSafeUpgrade: flag('AMBIENT_DISABLE_SAFE_UPGRADE', false),
    nativeNftables: flag('NATIVE_NFTABLES', false),
    forceIptablesBinary,
    nodeName,
    podNamespace,
    systemNamespace: text('SYSTEM_NAMESPACE', podNamespace),
    probeSourceIpv4: text('HOST_PROBE_SNAT_IP') || ambientDefaults.probeSourceIpv4,
    probeSourceIpv6: text('HOST_PROBE_SNAT_IPV6') || ambientDefaults.probeSourceIpv6,
  }
}

function enablementSelectors(yaml: string): readonly EnablementSelector[] {
  if (yaml.trim() === '') return defaultEnablementSelectors
  const value: unknown = parse(yaml)
  if (!Array.isArray(value)) {
    throw new SettingsError('AMBIENT_ENABLEMENT_SELECTOR: expected a YAML list of {podSelector, namespaceSelector}')
  }
  for (const [index, pair] of value.entries()) {
    const problem = enablementSelectorProblem(pair)
    if (problem !== undefined) throw new SettingsError(`AMBIENT_ENABLEMENT_SELECTOR[${index}]: ${problem}`)
  }
  return value as EnablementSelector[]
}
