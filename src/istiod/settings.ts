// The settings of the control plane process: flags and environment, read once.
import { type AmbientSettings, defaultAmbientSettings } from '../discovery/ambient/index.ts'
import { parseGoDuration } from './go-duration.ts'

export interface DiscoveryFlags {
  readonly kubeconfig?: string
  readonly namespace?: string
  readonly meshConfig?: string
  readonly domain?: string
  readonly clusterID?: string
  readonly httpAddr?: string
  readonly grpcAddr?: string
  readonly secureGRPCAddr?: string
  readonly monitoringAddr?: string
  readonly shutdownDuration?: string
  readonly keepaliveInterval?: string
  readonly keepaliveTimeout?: string
  readonly keepaliveMaxServerConnectionAge?: string
}

export interface DiscoverySettings {
  readonly kubeconfig: string | undefined
  readonly namespace: string
  readonly podName: string
  readonly revision: string
  readonly clusterId: string
  readonly meshConfigFile: string
  /** Empty: that listener is off. */
  readonly httpAddress: string
  readonly secureGrpcAddress: string
  readonly monitoringAddress: string
  readonly shutdownMs: number
  readonly keepaliveMs: number
  readonly keepaliveTimeoutMs: number
  readonly maxConnectionAgeMs: number | undefined
  readonly customHosts: readonly string[]
  readonly tokenAudiences: readonly string[]
  readonly trustedNodeAccounts: string
  readonly checkNodeIdentity: boolean
  /** False: node proxies of ambient mode are turned away. */
  readonly servesNodeProxies: boolean
  readonly quietTimes: { readonly afterMs: number; readonly maxMs: number }
  readonly streamsPerSecond: number
  readonly maxReceiveBytes: number
  readonly debugOnHttp: boolean
  readonly debugAuth: boolean
  readonly debugNamespaces: readonly string[]
  readonly caDir: string
  readonly caTtlSeconds: number
  readonly caRsaBits: number
  readonly defaultWorkloadTtlSeconds: number
  readonly maxWorkloadTtlSeconds: number
  readonly leaderElection: boolean
  readonly writeStatus: boolean
  readonly addressRanges: { readonly ipv4Prefix: string; readonly ipv6Prefix: string }
  readonly ambient: AmbientSettings
}

export class SettingError extends Error {
  readonly code = 'INVALID_SETTING'
}

const day = 86_400

/** Throws a SettingError that names the flag or variable. */
export function readSettings(
  flags: DiscoveryFlags,
  env: Readonly<Record<string, string | undefined>>,
  availableCores: number,
): DiscoverySettings {
  const read = reader(env)
  const namespace = flags.namespace ?? (env.POD_NAMESPACE || 'istio-system')
  const revision = env.REVISION || 'default'
  const clusterId = flags.clusterID ?? (env.CLUSTER_ID || 'Kubernetes')
  if (flags.grpcAddr) {
    throw new SettingError(
      '--grpcAddr: plaintext xDS is not served; use --secureGRPCAddr with a token or a certificate',
    )
  }
  const connectionAge = flags.keepaliveMaxServerConnectionAge
  return {
    kubeconfig: flags.kubeconfig,
    namespace,
    podName: env.POD_NAME || `istiod-${process.pid}`,
    revision,
    clusterId,
    meshConfigFile: flags.meshConfig ?? './etc/istio/config/mesh',
    httpAddress: flags.httpAddr ?? ':8080',
    secureGrpcAddress: flags.secureGRPCAddr ?? ':15012',
    monitoringAddress: flags.monitoringAddr ?? ':15014',
    shutdownMs: duration('--shutdownDuration', flags.shutdownDuration, 10_000),
    keepaliveMs: duration('--keepaliveInterval', flags.keepaliveInterval, 30_000),
    keepaliveTimeoutMs: duration('--keepaliveTimeout', flags.keepaliveTimeout, 10_000),
    maxConnectionAgeMs:
      connectionAge === undefined ? undefined : duration('--keepaliveMaxServerConnectionAge', connectionAge, 0),
    customHosts: read.list('ISTIOD_CUSTOM_HOST', ''),
    tokenAudiences: read.list('TOKEN_AUDIENCES', 'istio-ca'),
    trustedNodeAccounts: env.CA_TRUSTED_NODE_ACCOUNTS ?? `${namespace}/ztunnel`,
    checkNodeIdentity: read.flag('PILOT_ENABLE_XDS_IDENTITY_CHECK', true),
    servesNodeProxies: read.flag('PILOT_ENABLE_AMBIENT', true),
    quietTimes: {
      afterMs: read.duration('LATEEN_WORKLOAD_DEBOUNCE_AFTER', 10),
      maxMs: read.duration('LATEEN_WORKLOAD_DEBOUNCE_MAX', 100),
    },
    streamsPerSecond: read.number('PILOT_MAX_REQUESTS_PER_SECOND', 0) || Math.min(15 + 5 * availableCores, 100),
    maxReceiveBytes: read.number('ISTIO_GPRC_MAXRECVMSGSIZE', 64 * 1024 * 1024),
    debugOnHttp: read.flag('ENABLE_DEBUG_ON_HTTP', true),
    debugAuth: read.flag('ENABLE_DEBUG_ENDPOINT_AUTH', true),
    debugNamespaces: read.list('DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES', ''),
    caDir: env.ROOT_CA_DIR || './etc/cacerts',
    caTtlSeconds: read.duration('CITADEL_SELF_SIGNED_CA_CERT_TTL', 3650 * day * 1000) / 1000,
    caRsaBits: read.number('CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE', 2048),
    defaultWorkloadTtlSeconds: read.duration('DEFAULT_WORKLOAD_CERT_TTL', day * 1000) / 1000,
    maxWorkloadTtlSeconds: read.duration('MAX_WORKLOAD_CERT_TTL', 90 * day * 1000) / 1000,
    leaderElection: read.flag('ENABLE_LEADER_ELECTION', true),
    writeStatus: read.flag('AMBIENT_ENABLE_STATUS', true),
    addressRanges: {
      ipv4Prefix: env.PILOT_IP_AUTOALLOCATE_IPV4_PREFIX || '240.240.0.0/16',
      ipv6Prefix: env.PILOT_IP_AUTOALLOCATE_IPV6_PREFIX || '2001:2::/48',
    },
    ambient: {
      ...defaultAmbientSettings,
      clusterId,
      domainSuffix: flags.domain ?? 'cluster.local',
      systemNamespace: namespace,
      multiNetwork: read.flag('AMBIENT_ENABLE_MULTI_NETWORK', false),
      dryRunPolicies: read.flag('AMBIENT_ENABLE_DRY_RUN_AUTHORIZATION_POLICY', false),
      autoAllowWaypoints: read.flag('PILOT_AUTO_ALLOW_WAYPOINT_POLICY', false),
      serviceEntriesSelectPods: read.flag('PILOT_ENABLE_SERVICEENTRY_SELECT_PODS', true),
      servicesSelectWorkloadEntries: read.flag('PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES', true),
      allocateAddresses: read.flag('PILOT_ENABLE_IP_AUTOALLOCATE', true),
    },
  }
}

function duration(name: string, text: string | undefined, fallbackMs: number): number {
  if (text === undefined || text === '') return fallbackMs
  const ms = parseGoDuration(text)
  if (ms === undefined || ms < 0) throw new SettingError(`${name}: expected a duration such as 30s, not "${text}"`)
  return ms
}

function reader(env: Readonly<Record<string, string | undefined>>) {
  return {
    flag(name: string, fallback: boolean): boolean {
      const text = env[name]
      if (text === undefined || text === '') return fallback
      if (/^(true|t|1)$/i.test(text)) return true
      if (/^(false|f|0)$/i.test(text)) return false
      throw new SettingError(`${name}: expected true or false, not "${text}"`)
    },
    number(name: string, fallback: number): number {
      const text = env[name]
      if (text === undefined || text === '') return fallback
      const value = Number(text)
      if (!Number.isFinite(value)) throw new SettingError(`${name}: expected a number, not "${text}"`)
      return value
    },
    duration: (name: string, fallbackMs: number): number => duration(name, env[name], fallbackMs),
    list: (name: string, fallback: string): readonly string[] =>
      (env[name] ?? fallback)
        .split(',')
        .map((entry) => entry.trim())
        .filter((entry) => entry !== ''),
  }
}
