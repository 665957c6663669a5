// The configuration as the data plane takes it.
import { defaultHttp2Options } from '../../hbone/index.ts'
import { postQuantumGroup } from '../config/key-exchange.ts'
import { dataPlanePorts } from '../data-plane-ports.ts'
import type { DataPlaneOptions } from '../dataplane/index.ts'
import type { WorkerConfig } from './worker-config.ts'

const connectTimeoutMs = 10_000
const localWorkloadTimeoutMs = 5_000

/** The options for the proxy's own workload, which is no pod that connections are redirected in. */
export function ownDataPlaneOptions(config: WorkerConfig): DataPlaneOptions {
  const { mark: _, ...options } = dataPlaneOptions(config)
  return { ...options, ...(config.trustDomain === undefined ? {} : { trustDomain: config.trustDomain }) }
}

export function dataPlaneOptions(config: WorkerConfig): DataPlaneOptions {
  const { keepalive, packetMark } = config
  return {
    network: config.network,
    proxy: config.proxyEnabled,
    ...dataPlanePorts(config),
    ipv6: config.ipv6Enabled,
    ...(packetMark === undefined ? {} : { mark: packetMark }),
    transparent: config.originalSource === undefined ? 'attempt' : config.originalSource ? 'required' : 'never',
    reusePort: config.mode === 'dedicated' || config.inpodPortReuse,
    ...(keepalive === undefined
      ? {}
      : {
          keepalive: {
            timeSeconds: Math.ceil(keepalive.timeMs / 1000),
            intervalSeconds: Math.ceil(keepalive.intervalMs / 1000),
            retries: keepalive.retries,
            userTimeout: config.userTimeoutMs !== undefined,
          },
        }),
    http2: {
      ...defaultHttp2Options,
      streamWindowBytes: config.http2.streamWindow,
      connectionWindowBytes: config.http2.connectionWindow,
      maxFrameBytes: config.http2.frameSize,
    },
    pool: {
      maxTunnelsPerConnection: config.pool.maxStreamsPerConnection,
      unusedTimeoutMs: config.pool.unusedReleaseMs,
    },
    localhostAppTunnel: config.localhostAppTunnel,
    baggage: config.responseBaggage,
    allowTls12: config.tls12Enabled,
    ...(config.compliancePolicy === 'pqc' ? { groups: postQuantumGroup } : {}),
    policyLogLevel: config.policyLoggingAtInfo ? 'info' : 'debug',
    connectTimeoutMs,
    localWorkloadTimeoutMs,
  }
}
