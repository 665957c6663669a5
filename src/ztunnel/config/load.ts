// Environment and mesh file → the configuration of the node proxy. Every error stops the start.
import { existsSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { createSecureContext } from 'node:tls'
import { parseLogFilter } from '../../observability/index.ts'
import type { PodInfo } from '../model.ts'
import { canonicalIp, type LocalContent, parseLocalFile, parseSocketAddress } from '../state/index.ts'
import { readControlPlane, readToken } from './control-plane.ts'
import { ConfigError } from './errors.ts'
import { postQuantumGroup } from './key-exchange.ts'
import { mergeProxyConfig } from './proxy-config.ts'
import type { ZtunnelConfig } from './types.ts'
import { type Environment, readBoolean, readDurationMs, readInteger, readOptionalBoolean } from './variables.ts'
import { workerCount } from './workers.ts'

export interface ConfigInputs {
  readonly env: Environment
  /** The text of a file, or undefined when there is none. */
  readonly readFile: (path: string) => string | undefined
  readonly machineCpus: number
  /** Whether the TLS library has the group, by its OpenSSL name. */
  readonly knowsKeyExchange: (group: string) => boolean
}

/** This process's environment, files, CPUs and TLS library. */
export function processInputs(env: Environment): ConfigInputs {
  return {
    env,
    readFile: (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined),
    machineCpus: availableParallelism(),
    knowsKeyExchange,
  }
}

function knowsKeyExchange(group: string): boolean {
  try {
    createSecureContext({ ecdhCurve: group })
    return true
  } catch {
    return false
  }
}

const meshFilePath = './etc/istio/config/mesh'
const ports = { readinessPort: 15021, outboundPort: 15001, inboundPlaintextPort: 15006, inboundHbonePort: 15008 }
const socks5Port = 15080

/** Throws a ConfigError that names what is wrong. */
export function loadConfig(inputs: ConfigInputs): ZtunnelConfig {
  const { env } = inputs
  const proxyConfig = mergeProxyConfig(env, readMeshFile(inputs))
  const { proxyMetadata } = proxyConfig
  const warnings: string[] = []
  const mode = readMode(env)
  const proxyEnabled = readBoolean(env, 'ENABLE_PROXY', true)
  const dnsProxyEnabled = (proxyMetadata.DNS_CAPTURE ?? 'true').toLowerCase() === 'true'
  if (!proxyEnabled && !dnsProxyEnabled) throw new ConfigError('ztunnel run without any servers enabled')
  const xdsOnDemand = readBoolean(env, 'XDS_ON_DEMAND', false)
  if (xdsOnDemand && dnsProxyEnabled) throw new ConfigError('DNS proxy does not currently support on-demand mode')
  if (readBoolean(env, 'FAKE_CA', false))
    throw new ConfigError('FAKE_CA=true is refused: it exists for test builds only')
  const socks5 = readBoolean(env, 'UNSTABLE_ENABLE_SOCKS5', false)
  const self = readSelf(env)
  const xds = readControlPlane(inputs, 'XDS', proxyConfig.discoveryAddress)
  const ca = readControlPlane(inputs, 'CA', proxyConfig.discoveryAddress)
  const authToken = readToken(inputs)
  const localContent = readLocalContent(inputs)
  const originalSource = readOptionalBoolean(env, 'ENABLE_ORIG_SRC')
  const packetMark = readInteger(env, 'PACKET_MARK') ?? (mode === 'shared' ? 1337 : undefined)
  const compliancePolicy = readCompliance(inputs)
  return {
    mode,
    ...(mode === 'dedicated' ? { workload: readWorkload(env) } : {}),
    ...(self === undefined ? {} : { self }),
    proxyEnabled,
    dnsProxyEnabled,
    network: env.NETWORK ?? '',
    ...given('node', env.NODE_NAME),
    clusterId: env.ISTIO_META_CLUSTER_ID || env.CLUSTER_ID || 'Kubernetes',
    clusterDomain: env.CLUSTER_DOMAIN || 'cluster.local',
    ...given('trustDomain', env.TRUST_DOMAIN),
    podName: env.POD_NAME ?? '',
    podNamespace: env.POD_NAMESPACE ?? '',
    instanceIp: env.INSTANCE_IP || '1.1.1.1',
    ...ports,
    adminPort: proxyConfig.proxyAdminPort ?? 15000,
    statsPort: proxyConfig.statsPort ?? 15020,
    ...(socks5 ? { socks5Port } : {}),
    dnsProxyAddress: readDnsAddress(proxyMetadata.DNS_PROXY_ADDR),
    illegalPorts: new Set([
      ports.outboundPort,
      ports.inboundPlaintextPort,
      ports.inboundHbonePort,
      ...(socks5 ? [socks5Port] : []),
    ]),
    proxyMetadata,
    jsonMetadata: readJsonMetadata(env, warnings),
    ...(xds === undefined ? {} : { xds }),
    xdsOnDemand,
    ...(ca === undefined ? {} : { ca }),
    ...(authToken === undefined ? {} : { authToken }),
    secretTtlMs: readDurationMs(env, 'SECRET_TTL') ?? 86_400_000,
    ...(localContent === undefined ? {} : { localContent }),
    inpodSocket: env.INPOD_UDS || '/var/run/ztunnel/ztunnel.sock',
    inpodPortReuse: readBoolean(env, 'INPOD_PORT_REUSE', true),
    ...(packetMark === undefined ? {} : { packetMark }),
    ...(originalSource === undefined ? {} : { originalSource }),
    ipv6Enabled: readBoolean(env, 'IPV6_ENABLED', true),
    ...readKeepalive(env),
    http2: readHttp2(env, warnings),
    pool: {
      maxStreamsPerConnection: readInteger(env, 'POOL_MAX_STREAMS_PER_CONNECTION', 1, 65_535) ?? 100,
      unusedReleaseMs: readDurationMs(env, 'POOL_UNUSED_RELEASE_TIMEOUT') ?? 300_000,
    },
    drainDeadlineMs: readDrainDeadlineMs(env),
    workerThreads: workerCount(env, proxyConfig.concurrency, inputs.machineCpus),
    ...given('preferredServiceNamespace', env.PREFERED_SERVICE_NAMESPACE),
    localhostAppTunnel: readBoolean(env, 'LOCALHOST_APP_TUNNEL', true),
    responseBaggage: readBoolean(env, 'ENABLE_RESPONSE_BAGGAGE', true),
    ...given('crlPath', env.CRL_PATH),
    tls12Enabled: readBoolean(env, 'TLS12_ENABLED', false),
    ...(compliancePolicy === undefined ? {} : { compliancePolicy }),
    policyLoggingAtInfo: readBoolean(env, 'AUTHZ_POLICY_INFO_LOGGING', false),
    logFilter: readLogFilter(env),
    logFormat: readLogFormat(env),
    istioVersion: env.ISTIO_META_ISTIO_VERSION || 'unknown',
    warnings,
  }
}

function readMeshFile(inputs: ConfigInputs): { readonly path: string; readonly text: string } | undefined {
  try {
    const text = inputs.readFile(meshFilePath)
    return text === undefined ? undefined : { path: meshFilePath, text }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new ConfigError(`failed parsing mesh config file ${meshFilePath}: ${why}`, { cause: error })
  }
}

function readMode(env: Environment): ZtunnelConfig['mode'] {
  const mode = env.PROXY_MODE || 'shared'
  if (mode !== 'shared' && mode !== 'dedicated') throw new ConfigError('PROXY_MODE must be one of dedicated, shared')
  return mode
}

function readWorkload(env: Environment): PodInfo {
  const text = env.PROXY_WORKLOAD_INFO ?? ''
  const [namespace, name, serviceAccount, ...more] = text.split('/')
  if (!namespace || !name || !serviceAccount || more.length > 0) {
    throw new ConfigError(
      `invalid env var PROXY_WORKLOAD_INFO=${text} (must match the format 'namespace/name/service-account')`,
    )
  }
  return { namespace, name, serviceAccount }
}

function readSelf(env: Environment): PodInfo | undefined {
  const { POD_NAME: name, POD_NAMESPACE: namespace, SERVICE_ACCOUNT: serviceAccount } = env
  return name && namespace && serviceAccount ? { name, namespace, serviceAccount } : undefined
}

function readDnsAddress(text: string | undefined): ZtunnelConfig['dnsProxyAddress'] {
  if (text === undefined || text === '') return { host: 'localhost', port: 15053 }
  const port = /^localhost:(\d{1,5})$/.exec(text)?.[1]
  if (port !== undefined && Number(port) <= 65535) return { host: 'localhost', port: Number(port) }
  const address = parseSocketAddress(text)
  if (address === undefined || canonicalIp(address.ip) === undefined) {
    throw new ConfigError(`failed to parse DNS_PROXY_ADDR: ${text}`)
  }
  return { host: address.ip, port: address.port }
}

function readJsonMetadata(env: Environment, warnings: string[]): Readonly<Record<string, unknown>> {
  const prefix = 'ISTIO_METAJSON_'
  const metadata: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(prefix) || value === undefined) continue
    try {
      metadata[name.slice(prefix.length)] = JSON.parse(value)
    } catch (error) {
      warnings.push(`${name} is skipped, it is not JSON: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return metadata
}

function readLocalContent(inputs: ConfigInputs): LocalContent | undefined {
  const { LOCAL_XDS: inline, LOCAL_XDS_PATH: path } = inputs.env
  if (inline && path) throw new ConfigError('only one of LOCAL_XDS_PATH or LOCAL_XDS may be set')
  if (inline) return parseLocal('LOCAL_XDS', inline)
  if (!path) return undefined
  const text = inputs.readFile(path)
  if (text === undefined) throw new ConfigError(`LOCAL_XDS_PATH: there is no file ${path}`)
  return parseLocal(`LOCAL_XDS_PATH: ${path}`, text)
}

function readLogFilter(env: Environment): ZtunnelConfig['logFilter'] {
  const name = env.LATEEN_LOG ? 'LATEEN_LOG' : 'RUST_LOG'
  try {
    return parseLogFilter(env[name] || 'info')
  } catch (error) {
    throw new ConfigError(`${name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

function parseLocal(where: string, text: string): LocalContent {
  try {
    return parseLocalFile(text)
  } catch (error) {
    throw new ConfigError(`${where}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

function readHttp2(env: Environment, warnings: string[]): ZtunnelConfig['http2'] {
  const streamWindow = readInteger(env, 'HTTP2_STREAM_WINDOW_SIZE', 65_535, 0x7fffffff) ?? 4 * 1024 * 1024
  const connectionWindow = readInteger(env, 'HTTP2_CONNECTION_WINDOW_SIZE', 65_535, 0x7fffffff) ?? 16 * 1024 * 1024
  if (connectionWindow < 4 * streamWindow) {
    warnings.push(
      `HTTP2_CONNECTION_WINDOW_SIZE of ${connectionWindow} is less than four times HTTP2_STREAM_WINDOW_SIZE of ${streamWindow}: few tunnels that nobody reads from hold up all others of their connection`,
    )
  }
  return {
    streamWindow,
    connectionWindow,
    frameSize: readInteger(env, 'HTTP2_FRAME_SIZE', 16_384, 16_777_215) ?? 1024 * 1024,
  }
}

function readKeepalive(env: Environment): Pick<ZtunnelConfig, 'keepalive' | 'userTimeoutMs'> {
  const keepalive = {
    timeMs: readDurationMs(env, 'KEEPALIVE_TIME') ?? 180_000,
    intervalMs: readDurationMs(env, 'KEEPALIVE_INTERVAL') ?? 180_000,
    retries: readInteger(env, 'KEEPALIVE_RETRIES', 1, 127) ?? 9,
  }
  const userTimeoutMs = keepalive.timeMs + keepalive.retries * keepalive.intervalMs
  return {
    ...(readBoolean(env, 'KEEPALIVE_ENABLED', true) ? { keepalive } : {}),
    ...(readBoolean(env, 'USER_TIMEOUT_ENABLED', false) ? { userTimeoutMs } : {}),
  }
}

function readDrainDeadlineMs(env: Environment): number {
  const deadline = readDurationMs(env, 'CONNECTION_TERMINATION_DEADLINE')
  if (deadline !== undefined) return deadline
  const grace = readInteger(env, 'TERMINATION_GRACE_PERIOD_SECONDS')
  if (grace === undefined) return 5000
  return Math.max(1, grace > 10 ? grace - 5 : grace - 1) * 1000
}

function readCompliance({ env, knowsKeyExchange }: ConfigInputs): ZtunnelConfig['compliancePolicy'] {
  const policy = env.COMPLIANCE_POLICY
  if (policy === undefined || policy === '') return undefined
  if (policy !== 'pqc') throw new ConfigError(`invalid env var COMPLIANCE_POLICY=${policy} (expected pqc)`)
  if (!knowsKeyExchange(postQuantumGroup)) {
    throw new ConfigError(
      `COMPLIANCE_POLICY=pqc: ${postQuantumGroup} is not known to openssl ${process.versions.openssl}`,
    )
  }
  return policy
}

function readLogFormat(env: Environment): ZtunnelConfig['logFormat'] {
  const format = env.LOG_FORMAT || 'plain'
  if (format !== 'plain' && format !== 'json') {
    throw new ConfigError(`invalid env var LOG_FORMAT=${format} (expected plain or json)`)
  }
  return format
}

function given<K extends string>(key: K, value: string | undefined): { readonly [P in K]?: string } {
  return (value === undefined || value === '' ? {} : { [key]: value }) as { readonly [P in K]?: string }
}
