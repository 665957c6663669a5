// The process's own HTTP servers: admin, metrics, readiness.
import { existsSync, readFileSync } from 'node:fs'
import type { Logging, MetricsRegistry } from '../observability/index.ts'
import { startAdminServer, startReadinessServer, startStatsServer, type VersionFacts } from './admin/index.ts'
import type { CertificateManager } from './certificates/index.ts'
import { dumpConfig, type ZtunnelConfig } from './config/index.ts'
import type { Pods } from './dataplane/index.ts'
import type { Readiness } from './readiness.ts'
import type { MeshState } from './state/index.ts'

export interface ServersOptions {
  readonly config: ZtunnelConfig
  readonly version: VersionFacts
  readonly logging: Logging
  readonly registry: MetricsRegistry
  readonly readiness: Readiness
  readonly state: MeshState
  readonly certificates: CertificateManager
  /** Shared mode only. */
  readonly pods?: Pods
  /** Starts a graceful shutdown. */
  readonly shutDown: () => void
}

/** Binds every server, or rejects with none of them left. */
export async function startServers(options: ServersOptions): Promise<AsyncDisposable> {
  const { config, version, logging, registry, readiness, state, certificates, pods, shutDown } = options
  const { localContent, ipv6Enabled: ipv6 } = config
  const dump = {
    view: state,
    version,
    config: dumpConfig(config),
    certificates: () => certificates.list(),
    ...(localContent === undefined ? {} : { localContent }),
    ...(pods === undefined ? {} : { pods: () => pods.list() }),
  }
  await using started = new AsyncDisposableStack()
  started.use(await startReadinessServer(readiness, { port: config.readinessPort, ipv6 }))
  const ipv6Loopback = ipv6 && hasIpv6Loopback()
  started.use(await startAdminServer({ logging, dump, shutDown }, { port: config.adminPort, ipv6Loopback }))
  started.use(await startStatsServer(registry, { port: config.statsPort, ipv6 }))
  return started.move()
}

function hasIpv6Loopback(): boolean {
  const setting = '/proc/sys/net/ipv6/conf/lo/disable_ipv6'
  return existsSync(setting) && readFileSync(setting, 'utf8').trim() !== '1'
}
