// The HTTP servers of the main thread: admin and metrics.
import { existsSync, readFileSync } from 'node:fs'
import type { Logging, MetricsRegistry } from '../observability/index.ts'
import { type PodsListing, startAdminServer, startStatsServer, type VersionFacts } from './admin/index.ts'
import type { CertificateManager } from './certificates/index.ts'
import { dumpConfig, type ZtunnelConfig } from './config/index.ts'
import type { Pods } from './pods/index.ts'
import { createProcessProfiler } from './profiling/index.ts'
import type { MeshState } from './state/index.ts'
import type { WorkerPod, Workers } from './workers/index.ts'

export interface ServersOptions {
  readonly config: ZtunnelConfig
  readonly version: VersionFacts
  readonly logging: Logging
  readonly registry: MetricsRegistry
  readonly state: MeshState
  readonly certificates: CertificateManager
  readonly workers: Workers
  /** Shared mode only. */
  readonly pods?: Pods<WorkerPod>
  /** Starts a graceful shutdown. */
  readonly shutDown: () => void
}

/** Binds every server, or rejects with none of them left. */
export async function startServers(options: ServersOptions): Promise<AsyncDisposable> {
  const { config, version, logging, registry, state, certificates, workers, pods, shutDown } = options
  const { localContent, ipv6Enabled: ipv6 } = config
  const dump = {
    view: state,
    version,
    config: dumpConfig(config),
    certificates: () => certificates.list(),
    ...(localContent === undefined ? {} : { localContent }),
    ...(pods === undefined ? {} : { pods: () => listPods(pods, workers) }),
  }
  const profiler = createProcessProfiler(workers.profilers())
  await using started = new AsyncDisposableStack()
  const ipv6Loopback = ipv6 && hasIpv6Loopback()
  started.use(await startAdminServer({ logging, dump, profiler, shutDown }, { port: config.adminPort, ipv6Loopback }))
  started.use(await startStatsServer(registry, { port: config.statsPort, ipv6 }))
  return started.move()
}

async function listPods(pods: Pods<WorkerPod>, workers: Workers): Promise<PodsListing> {
  const { byPod, silent } = await workers.pods.connections()
  return {
    pods: pods.list().map(({ uid, pod, state, served }) => ({
      uid,
      pod,
      state,
      connections: (served === undefined ? undefined : byPod.get(served.id)) ?? [],
    })),
    silentWorkers: silent,
  }
}

function hasIpv6Loopback(): boolean {
  const setting = '/proc/sys/net/ipv6/conf/lo/disable_ipv6'
  return existsSync(setting) && readFileSync(setting, 'utf8').trim() !== '1'
}
