// The workers of the process, as the main thread holds them all.
import { createSocket } from '../../linux/index.ts'
import type { Logging, MetricsRegistry } from '../../observability/index.ts'
import type { RevocationSource, WorkloadCertificate } from '../certificates/index.ts'
import type { ZtunnelConfig } from '../config/index.ts'
import type { ThreadProfiler } from '../profiling/index.ts'
import { formatAddress } from '../state/address.ts'
import type { MeshState } from '../state/index.ts'
import type { MainCall, MainResults, ToWorker } from './messages.ts'
import { createServedPods, type ServedPods } from './served-pods.ts'
import { createTunnelCounts, createTunnelLinks } from './tunnel-balance.ts'
import { registerTunnelMetrics } from './tunnel-metrics.ts'
import { createVitals, stuckWorkers } from './vitals.ts'
import { workerConfigOf } from './worker-config.ts'
import { startWorkerThread, type WorkerThread } from './worker-thread.ts'

export interface Workers extends AsyncDisposable {
  readonly pods: ServedPods
  /** Resolves when all run and the readiness endpoint answers; rejects when that cannot be. */
  readonly started: Promise<void>
  /** Rejects with a WorkerError when one ends that should run: the process must not go on without it. */
  readonly failed: Promise<never>
  /** A certificate for new connections; without one what was told before is forgotten. */
  tellCertificate(identity: string, certificate: WorkloadCertificate | undefined): void
  tellRevocations(source: RevocationSource): void
  /** The tasks without which the process is not ready. */
  tellPending(tasks: readonly string[]): void
  /** By the name of the thread. */
  profilers(): ReadonlyMap<string, ThreadProfiler>
}

export interface WorkersOptions {
  readonly config: ZtunnelConfig
  readonly state: MeshState
  readonly logging: Logging
  readonly registry: MetricsRegistry
  /** For a connection that waits; by SPIFFE id. */
  readonly certificate: (identity: string) => Promise<WorkloadCertificate>
  /** On-demand mode: resolves when the mesh shows what the key is. */
  readonly address: (
    key: string,
    options: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ) => Promise<void>
}

const closeTimeoutMs = 2_000

/**
 * Starts the threads. What they are told meanwhile they find when they run, and so does who connects to the readiness endpoint. Throws
 * `failed to bind to address <addr>: <os error>` when that cannot be bound.
 */
export function startWorkers(options: WorkersOptions): Workers {
  const { config, state, logging, registry } = options
  const count = config.workerThreads
  const fd = listenForProbes(config)
  const vitals = createVitals(count)
  const counts = createTunnelCounts(count)
  registerTunnelMetrics(registry, counts)
  const workerConfig = workerConfigOf(config)
  async function serve(call: MainCall, signal: AbortSignal): Promise<MainResults[MainCall['kind']]> {
    switch (call.kind) {
      case 'certificate':
        return await options.certificate(call.identity)
      case 'address':
        await options.address(call.key, { timeoutMs: call.timeoutMs, signal })
        return undefined
    }
  }
  const threads = createTunnelLinks(count).map((links, index) =>
    startWorkerThread({
      data: { index, config: workerConfig, mesh: state.memory, vitals, tunnels: { counts, links } },
      logging,
      registry,
      serve,
    }),
  )
  const [first] = threads
  if (first === undefined) throw new RangeError('there is no worker without a number of workers')
  const tellAll = (message: ToWorker): void => {
    for (const thread of threads) thread.post(message)
  }
  const endPublications = state.onPublish((publication) => tellAll({ kind: 'mesh', publication }))
  // A data plane that stands still must fail the probe, so it is the data plane that answers it.
  const readiness = first.call({ kind: 'serve-readiness', fd })
  const started = Promise.all([readiness, ...threads.map((thread) => thread.started)]).then(() => undefined)
  // Whoever waits for it is told.
  started.catch(() => undefined)
  return {
    started,
    pods: createServedPods({
      workers: threads,
      sharePorts: config.mode === 'dedicated' || config.inpodPortReuse,
      stuck: () => stuckWorkers(vitals),
    }),
    failed: Promise.race(threads.map((thread) => thread.failed)),
    tellCertificate: (identity, certificate) =>
      tellAll(
        certificate === undefined
          ? { kind: 'no-certificate', identity }
          : { kind: 'certificate', identity, certificate },
      ),
    tellRevocations: (source) => tellAll({ kind: 'revocations', source }),
    tellPending: (tasks) => tellAll({ kind: 'pending', tasks }),
    profilers: () => new Map(threads.map((thread) => [nameOf(thread), profilerOf(thread)])),
    async [Symbol.asyncDispose]() {
      const reason = 'the process ends'
      const closing = threads.map((thread) => thread.call({ kind: 'close', reason }, { timeoutMs: closeTimeoutMs }))
      // One that does not answer, or has ended, is ended all the same.
      await Promise.allSettled(closing)
      endPublications()
      await Promise.all(threads.map((thread) => thread.terminate()))
    },
  }
}

const probeBacklog = 16

/** A wildcard address. */
function listenForProbes({ readinessPort: port, ipv6Enabled }: ZtunnelConfig): number {
  const bind = { ip: ipv6Enabled ? '::' : '0.0.0.0', port }
  try {
    const family = ipv6Enabled ? 6 : 4
    return createSocket({ family, type: 'stream', reuseAddress: true, bind, backlog: probeBacklog }).fd
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Error(`failed to bind to address ${formatAddress(bind)}: ${why}`, { cause: error })
  }
}

const nameOf = ({ index }: WorkerThread): string => `worker ${index}`

const answerTimeoutMs = 5_000

function profilerOf({ call }: WorkerThread): ThreadProfiler {
  return {
    sampleCpu: (options) =>
      call({ kind: 'cpu-profile', ...options }, { timeoutMs: options.seconds * 1000 + answerTimeoutMs }),
    setHeapSampling: (intervalBytes) => call({ kind: 'heap-sampling', intervalBytes }, { timeoutMs: answerTimeoutMs }),
    heapProfile: () => call({ kind: 'heap-profile' }, { timeoutMs: answerTimeoutMs }),
  }
}
