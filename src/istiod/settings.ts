// The settings of the control plane process: flags and environment, read once.
import { type AmbientSettings, defaultAmbientSettings } from '../discovery/ambient/index.ts'
import type { ConnectionLimits } from '../grpc/server/index.ts'
import { riskyKubeconfigOptions } from '../kube/index.ts'
import { type AuthenticationSettings, readAuthenticationSettings } from './authentication-settings.ts'
import { type CertificateSettings, readCertificateSettings } from './certificate-settings.ts'
import { opensslNames } from './cipher-suites.ts'
import type { KindChoice } from './ignored-kinds.ts'
import {
  booleanFlag,
  duration,
  listenAddress,
  parseBundleEndpoints,
  parseClusterAliases,
  SettingError,
  settingReader,
  splitList,
} from './setting-reader.ts'

export interface DiscoveryFlags {
  readonly kubeconfig?: string
  readonly namespace?: string
  readonly meshConfig?: string
  readonly networksConfig?: string
  readonly configDir?: string
  readonly clusterRegistriesNamespace?: string
  readonly clusterAliases?: string
  readonly revision?: string
  readonly caCertFile?: string
  readonly tlsCertFile?: string
  readonly tlsKeyFile?: string
  readonly tlsCipherSuites?: string
  readonly tlsMinVersion?: string
  readonly ctrlz_address?: string
  readonly ctrlz_port?: string
  readonly domain?: string
  readonly clusterID?: string
  readonly httpAddr?: string
  readonly grpcAddr?: string
  readonly secureGRPCAddr?: string
  readonly monitoringAddr?: string
  readonly profile?: string
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
  /** The only namespace whose objects are read; empty: all are. */
  readonly watchNamespace: string
  /** Which CRDs are not to be read. */
  readonly kinds: KindChoice
  readonly clusterId: string
  readonly meshConfigFile: string
  readonly meshNetworksFile: string
  /** Name of a ConfigMap whose mesh config lies under the primary one; empty: none. */
  readonly sharedMeshConfig: string
  /** Empty: mesh configuration comes from the cluster, unless mesh config names other sources. */
  readonly configDir: string
  /** Where the Secrets of remote clusters are. */
  readonly clusterRegistriesNamespace: string
  /** A file or directory of kubeconfigs, which counts in place of the Secrets; empty: none. */
  readonly remoteKubeconfigPath: string
  readonly clusterAliases: ReadonlyMap<string, string>
  /** How long a remote cluster may hold up the start; 0: as long as it takes. */
  readonly remoteClusterTimeoutMs: number
  readonly allowedKubeconfigOptions: readonly string[]
  /** Empty: that listener is off. */
  readonly httpAddress: string
  readonly secureGrpcAddress: string
  /** xDS without TLS, for clients that are then nobody. Off unless asked for. */
  readonly plainGrpcAddress: string
  readonly introspectionAddress: string
  readonly serving: ServingFiles
  readonly monitoringAddress: string
  readonly shutdownMs: number
  readonly keepaliveMs: number
  readonly keepaliveTimeoutMs: number
  readonly maxConnectionAgeMs: number | undefined
  readonly customHosts: readonly string[]
  /** Where the roots of other trust domains are published. */
  readonly spiffeBundleEndpoints: readonly { readonly trustDomain: string; readonly url: string }[]
  readonly authentication: AuthenticationSettings
  /** Who may ask for certificates of the pods of their node: `namespace/account,…`; nobody by default. */
  readonly trustedNodeAccounts: string
  readonly authenticates: { readonly onTls: boolean; readonly onPlaintext: boolean }
  /** Configuration is passed on to control planes of the system namespace alone. */
  readonly restrictsExport: boolean
  readonly servesCertificates: boolean
  readonly checkNodeIdentity: boolean
  /** False: node proxies of ambient mode are turned away. */
  readonly servesNodeProxies: boolean
  readonly quietTimes: { readonly afterMs: number; readonly maxMs: number }
  /** The process is started on demand, by a first stream that is then to be refused. */
  readonly warmsUp: boolean
  readonly streamsPerSecond: number
  /** A client that takes nothing for so long is cut off; 0: none is. */
  readonly sendTimeoutMs: number
  /** Of the gRPC ports. */
  readonly connectionLimits: ConnectionLimits
  readonly maxReceiveBytes: number
  readonly maxConcurrentStreams: number
  readonly debugOnHttp: boolean
  readonly debugAuth: boolean
  readonly debugNamespaces: readonly string[]
  /** Pages that change something are served. */
  readonly adminPages: boolean
  /** Profiles may be taken. */
  readonly profiling: boolean
  readonly certificates: CertificateSettings
  readonly caDir: string
  readonly caTtlSeconds: number
  readonly caRsaBits: number
  readonly defaultWorkloadTtlSeconds: number
  readonly maxWorkloadTtlSeconds: number
  readonly leaderElection: boolean
  readonly writeStatus: boolean
  /** Objects whose status is written at once. */
  readonly statusWriters: number
  readonly registration: {
    readonly registers: boolean
    readonly checksHealth: boolean
    readonly validatesIdentity: boolean
    readonly graceMs: number
  }
  readonly addressRanges: { readonly ipv4Prefix: string; readonly ipv6Prefix: string }
  readonly ambient: AmbientSettings
}

export { SettingError } from './setting-reader.ts'

/** Where the certificate of the TLS port may be found, and how it is offered. */
export interface ServingFiles {
  readonly certFile: string
  readonly keyFile: string
  readonly caFile: string
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  /** IANA names of the suites of TLS 1.2; empty: the default ones. */
  readonly cipherSuites: readonly string[]
}

const day = 86_400

/** Throws a SettingError that names the flag or variable. */
export function readSettings(
  flags: DiscoveryFlags,
  env: Readonly<Record<string, string | undefined>>,
  availableCores: number,
): DiscoverySettings {
  const read = settingReader(env)
  const namespace = flags.namespace ?? (env.POD_NAMESPACE || 'istio-system')
  const revision = flags.revision || env.REVISION || 'default'
  const clusterId = flags.clusterID ?? (env.CLUSTER_ID || 'Kubernetes')
  const maxWorkloadTtlSeconds = read.duration('MAX_WORKLOAD_CERT_TTL', 90 * day * 1000) / 1000
  const servesNodeProxies = read.flag('PILOT_ENABLE_AMBIENT', true)
  const connectionAge = flags.keepaliveMaxServerConnectionAge
  return {
    kubeconfig: flags.kubeconfig,
    namespace,
    podName: env.POD_NAME || `istiod-${process.pid}`,
    revision,
    watchNamespace: env.ISTIO_WATCH_NAMESPACE ?? '',
    kinds: { ignore: read.list('PILOT_IGNORE_RESOURCES', ''), include: read.list('PILOT_INCLUDE_RESOURCES', '') },
    clusterId,
    meshConfigFile: flags.meshConfig ?? './etc/istio/config/mesh',
    meshNetworksFile: flags.networksConfig ?? './etc/istio/config/meshNetworks',
    sharedMeshConfig: env.SHARED_MESH_CONFIG ?? '',
    configDir: flags.configDir ?? '',
    clusterRegistriesNamespace: flags.clusterRegistriesNamespace || namespace,
    remoteKubeconfigPath: env.PILOT_MULTICLUSTER_KUBECONFIG_PATH ?? '',
    clusterAliases: parseClusterAliases(flags.clusterAliases ?? ''),
    remoteClusterTimeoutMs: read.duration('PILOT_REMOTE_CLUSTER_TIMEOUT', 30_000),
    allowedKubeconfigOptions: allowedKubeconfigOptions(read.list('PILOT_INSECURE_MULTICLUSTER_KUBECONFIG_OPTIONS', '')),
    httpAddress: listenAddress('--httpAddr', flags.httpAddr ?? ':8080'),
    secureGrpcAddress: listenAddress('--secureGRPCAddr', flags.secureGRPCAddr ?? ':15012'),
    plainGrpcAddress: listenAddress('--grpcAddr', flags.grpcAddr ?? ''),
    monitoringAddress: listenAddress('--monitoringAddr', flags.monitoringAddr ?? ':15014'),
    introspectionAddress: introspectionAddress(flags),
    serving: servingFiles(flags),
    shutdownMs: duration('--shutdownDuration', flags.shutdownDuration, 10_000),
    keepaliveMs: duration('--keepaliveInterval', flags.keepaliveInterval, 30_000),
    keepaliveTimeoutMs: duration('--keepaliveTimeout', flags.keepaliveTimeout, 10_000),
    maxConnectionAgeMs:
      connectionAge === undefined ? undefined : duration('--keepaliveMaxServerConnectionAge', connectionAge, 0),
    customHosts: read.list('ISTIOD_CUSTOM_HOST', ''),
    spiffeBundleEndpoints: parseBundleEndpoints(env.SPIFFE_BUNDLE_ENDPOINTS ?? ''),
    authentication: readAuthenticationSettings(env),
    trustedNodeAccounts: env.CA_TRUSTED_NODE_ACCOUNTS ?? '',
    authenticates: {
      onTls: read.flag('XDS_AUTH', true),
      onPlaintext: read.flag('XDS_AUTH_PLAINTEXT', false),
    },
    restrictsExport: read.flag('ENABLE_XDS_API_GENERATOR_AUTH', true),
    servesCertificates: read.flag('ENABLE_CA_SERVER', true),
    checkNodeIdentity: read.flag('PILOT_ENABLE_XDS_IDENTITY_CHECK', true),
    servesNodeProxies,
    quietTimes: {
      afterMs: read.duration('LATEEN_WORKLOAD_DEBOUNCE_AFTER', 10),
      maxMs: read.duration('LATEEN_WORKLOAD_DEBOUNCE_MAX', 100),
    },
    warmsUp: (env.K_REVISION ?? '') !== '',
    streamsPerSecond: read.number('PILOT_MAX_REQUESTS_PER_SECOND', 0) || Math.min(15 + 5 * availableCores, 100),
    sendTimeoutMs: read.duration('PILOT_XDS_SEND_TIMEOUT', 60_000),
    connectionLimits: {
      provingMs: read.duration('LATEEN_CONNECTION_PROOF_TIMEOUT', 30_000),
      idleMs: read.duration('LATEEN_CONNECTION_IDLE_TIMEOUT', 300_000),
      mostUnproven: read.number('LATEEN_MAX_UNPROVEN_CONNECTIONS', 1_000),
    },
    maxReceiveBytes: read.number('ISTIO_GPRC_MAXRECVMSGSIZE', 16 * 1024 * 1024),
    maxConcurrentStreams: read.number('ISTIO_GPRC_MAXSTREAMS', 100_000),
    debugOnHttp: read.flag('ENABLE_DEBUG_ON_HTTP', true),
    debugAuth: read.flag('ENABLE_DEBUG_ENDPOINT_AUTH', true),
    debugNamespaces: read.list('DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES', ''),
    adminPages: read.flag('UNSAFE_ENABLE_ADMIN_ENDPOINTS', false),
    profiling: booleanFlag('--profile', flags.profile, true),
    certificates: readCertificateSettings(env),
    caDir: env.ROOT_CA_DIR || './etc/cacerts',
    caTtlSeconds: read.duration('CITADEL_SELF_SIGNED_CA_CERT_TTL', 3650 * day * 1000) / 1000,
    caRsaBits: rsaBits(read.number('CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE', 2048)),
    // Whoever lowers the maximum means those that ask for nothing, too.
    defaultWorkloadTtlSeconds: Math.min(
      read.duration('DEFAULT_WORKLOAD_CERT_TTL', day * 1000) / 1000,
      maxWorkloadTtlSeconds,
    ),
    maxWorkloadTtlSeconds,
    leaderElection: read.flag('ENABLE_LEADER_ELECTION', true),
    writeStatus: read.flag('AMBIENT_ENABLE_STATUS', true) && servesNodeProxies,
    statusWriters: atLeastOne('PILOT_STATUS_MAX_WORKERS', read.number('PILOT_STATUS_MAX_WORKERS', 10)),
    registration: {
      registers: read.flag('PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION', true),
      checksHealth: read.flag('PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS', true),
      validatesIdentity: read.flag('ISTIO_WORKLOAD_ENTRY_VALIDATE_IDENTITY', true),
      graceMs: read.duration('PILOT_WORKLOAD_ENTRY_GRACE_PERIOD', 10_000),
    },
    addressRanges: {
      ipv4Prefix: read.prefix('PILOT_IP_AUTOALLOCATE_IPV4_PREFIX', 4, '240.240.0.0/16'),
      ipv6Prefix: read.prefix('PILOT_IP_AUTOALLOCATE_IPV6_PREFIX', 6, '2001:2::/48'),
    },
    ambient: {
      ...defaultAmbientSettings,
      clusterId,
      domainSuffix: flags.domain ?? 'cluster.local',
      systemNamespace: namespace,
      multiNetwork: read.flag('AMBIENT_ENABLE_MULTI_NETWORK', false) && servesNodeProxies,
      dryRunPolicies: read.flag('AMBIENT_ENABLE_DRY_RUN_AUTHORIZATION_POLICY', false) && servesNodeProxies,
      autoAllowWaypoints: read.flag('PILOT_AUTO_ALLOW_WAYPOINT_POLICY', false) && servesNodeProxies,
      serviceEntriesSelectPods: read.flag('PILOT_ENABLE_SERVICEENTRY_SELECT_PODS', true),
      servicesSelectWorkloadEntries: read.flag('PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES', true),
      allocateAddresses: read.flag('PILOT_ENABLE_IP_AUTOALLOCATE', true),
    },
  }
}

function rsaBits(bits: number): number {
  if (bits >= 2048 && bits <= 8192) return bits
  throw new SettingError(`CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE: expected 2048 to 8192, not "${bits}"`)
}

function atLeastOne(name: string, value: number): number {
  if (value >= 1) return value
  throw new SettingError(`${name}: expected at least 1, not ${value}`)
}

function allowedKubeconfigOptions(options: readonly string[]): readonly string[] {
  const unknown = options.find((option) => !(riskyKubeconfigOptions as readonly string[]).includes(option))
  if (unknown === undefined) return options
  throw new SettingError(
    `PILOT_INSECURE_MULTICLUSTER_KUBECONFIG_OPTIONS: expected some of ${riskyKubeconfigOptions.join(', ')}, not "${unknown}"`,
  )
}

function introspectionAddress({
  ctrlz_address: host = 'localhost',
  ctrlz_port: port = '9876',
}: DiscoveryFlags): string {
  // 0 is off, as no fixed port could be told to anybody.
  return port === '0' ? '' : listenAddress('--ctrlz_port', `${host.includes(':') ? `[${host}]` : host}:${port}`)
}

function servingFiles(flags: DiscoveryFlags): ServingFiles {
  const { tlsCertFile: certFile = '', tlsKeyFile: keyFile = '', caCertFile: caFile = '' } = flags
  const given = [certFile, keyFile, caFile].filter((file) => file !== '').length
  if (given !== 0 && given !== 3) {
    throw new SettingError('--tlsCertFile, --tlsKeyFile and --caCertFile: expected all three or none')
  }
  const version = flags.tlsMinVersion || '1.2'
  if (version !== '1.2' && version !== '1.3') {
    throw new SettingError(`--tls-min-version: expected 1.2 or 1.3, not "${version}"`)
  }
  const cipherSuites = splitList(flags.tlsCipherSuites ?? '')
  const unknown = cipherSuites.find((suite) => !Object.hasOwn(opensslNames, suite))
  if (unknown !== undefined) {
    throw new SettingError(
      `--tls-cipher-suites: expected some of ${Object.keys(opensslNames).join(', ')}, not "${unknown}"`,
    )
  }
  return { certFile, keyFile, caFile, minVersion: `TLSv${version}`, cipherSuites }
}
