// The node proxy as one process: puts its parts together in the order they need each other, and takes them down again.
import { closeSync } from 'node:fs'
import { createSocket, openNetworkNamespace, raiseDescriptorLimit, runInNamespace } from '../linux/index.ts'
import {
  createMetricsRegistry,
  type Logging,
  registerLogMetrics,
  registerProcessMetrics,
  type Scope,
  startEventLoopMetrics,
  startThreadMemoryMetrics,
} from '../observability/index.ts'
import type { VersionFacts } from './admin/index.ts'
import { openCertificateSource } from './certificate-source.ts'
import { openRevocations } from './certificates/index.ts'
import { dumpConfig, type ZtunnelConfig } from './config/index.ts'
import { connectXds } from './control-plane.ts'
import { dataPlanePorts } from './data-plane-ports.ts'
import { checkPortsAreFree } from './dataplane/free-ports.ts'
import { watchDescriptors } from './descriptors.ts'
import { createPods, followNodeAgent, type PodChange, type Pods } from './pods/index.ts'
import { createReadiness, type Readiness } from './readiness.ts'
import { startServers } from './servers.ts'
import { createMeshState } from './state/index.ts'
import { errorTexts } from './telemetry/error-texts.ts'
import { registerMeshMemoryMetrics } from './telemetry/mesh-memory.ts'
import { createZtunnelMetrics, registerBuildMetric } from './telemetry/metrics.ts'
import { startWorkers, WorkerError, type WorkerPod, type Workers } from './workers/index.ts'

/**
 * Runs until the signal aborts; connections in progress then have until the drain deadline. Resolves with the exit status: 1 when the
 * node agent broke the protocol, or when a worker failed, after which nothing is served any more. Rejects when the start fails.
 */
export async function runZtunnel(
  config: ZtunnelConfig,
  { logging, version }: { readonly logging: Logging; readonly version: VersionFacts },
  signal: AbortSignal,
): Promise<number> {
  const log = logging.scope('ztunnel', 'The process')
  const descriptors = raiseDescriptorLimit()
  log.info('file limits', { before: descriptors.before, after: descriptors.after })
  for (const warning of config.warnings) log.warn(warning)
  log.info('running with config', { config: JSON.stringify(dumpConfig(config)) })
  if (config.mode === 'shared') checkRights(config)
  else checkOwnPorts(config)

  await using stack = new AsyncDisposableStack()
  stack.use(watchDescriptors({ limit: Number(descriptors.after), log }))
  const shutdown = new AbortController()
  const stopping = AbortSignal.any([signal, shutdown.signal])
  const registry = createMetricsRegistry()
  registerProcessMetrics(registry)
  registerLogMetrics(registry, logging)
  stack.use(startEventLoopMetrics(registry, 'main'))
  stack.use(startThreadMemoryMetrics(registry, 'main'))
  registerBuildMetric(registry, { istioVersion: config.istioVersion })
  const metrics = createZtunnelMetrics(registry)
  const state = createMeshState({
    readers: config.workerThreads,
    ...(config.node === undefined ? {} : { node: config.node }),
    onListenerFailure: (error) =>
      log.error('a change of the mesh was not followed up', { error: error instanceof Error ? error : String(error) }),
  })
  registerMeshMemoryMetrics(registry, state.usage)
  const workers: Workers = stack.use(
    startWorkers({
      config,
      state,
      logging,
      registry,
      certificate: (identity) => certificates.get(identity),
      async address(key, options) {
        await mesh?.onDemand?.ask(key, options)
      },
    }),
  )
  metrics.workerThreads.with({}).set(config.workerThreads)
  const readiness = createReadiness((pending) => workers.tellPending(pending))
  const tasks = readinessTasks(config, readiness)
  const certificates = openCertificateSource(config, {
    state,
    log: logging.scope('identity', 'Certificates'),
    onCertificate: workers.tellCertificate,
  })
  stack.defer(() => certificates.close())
  if (config.localContent !== undefined) state.replace(config.localContent)
  const xdsLog = logging.scope('xds', 'The mesh from the control plane')
  const mesh =
    config.xds === undefined ? undefined : stack.use(connectXds(config, config.xds, { state, metrics, log: xdsLog }))
  if (config.crlPath !== undefined) {
    const proxyLog = logging.scope('proxy', 'Connections')
    await followRevocations(config.crlPath, { log: proxyLog, readiness, workers, stack })
  }

  await workers.started
  const pods = createPods({
    start: (pod, namespace) => workers.pods.start({ pod, namespace, listeners: 'all' }),
    onChange: (change) => {
      if (change.kind === 'started') metrics.proxiesStarted.with({}).inc()
      if (change.kind === 'stopped') metrics.proxiesStopped.with({}).inc()
      logPod(log, change)
    },
  })
  stack.defer(() => pods.stop(errorTexts.drained))
  registry.beforeCollect(() => {
    const list = pods.list()
    metrics.activeProxies.with({}).set(list.filter((one) => one.state === 'Up').length)
    metrics.pendingProxies.with({}).set(list.filter((one) => one.state === 'Pending').length)
  })
  stack.use(
    await startServers({
      config,
      version,
      logging,
      registry,
      state,
      certificates: certificates.manager,
      workers,
      ...(config.mode === 'shared' ? { pods } : {}),
      shutDown: () => shutdown.abort(),
    }),
  )
  const serving = serve(config, { workers, pods, tasks, logging, log, stopping, synced: mesh?.synced })
  try {
    return await Promise.race([serving, workers.failed])
  } catch (error) {
    if (!(error instanceof WorkerError)) throw error
    log.error('the data plane is not whole any more, the process ends', { error })
    shutdown.abort(error)
    return 1
  }
}

/** Each tells whether what it is named for is done. */
function readinessTasks({ mode, dnsProxyEnabled }: ZtunnelConfig, readiness: Readiness) {
  return {
    state: readiness.task('state manager'),
    proxy: readiness.task(mode === 'shared' ? 'workload proxy manager' : 'proxy'),
    dns: mode === 'dedicated' && dnsProxyEnabled ? readiness.task('dns proxy') : (_: boolean) => undefined,
  }
}

interface Serving {
  readonly workers: Workers
  readonly pods: Pods<WorkerPod>
  readonly tasks: ReturnType<typeof readinessTasks>
  readonly logging: Logging
  readonly log: Scope
  readonly stopping: AbortSignal
  readonly synced: Promise<void> | undefined
}

/** Serves the pods once the mesh is known, until it is to stop; resolves with the exit status when connections have ended. */
async function serve(config: ZtunnelConfig, serving: Serving): Promise<number> {
  const { workers, pods, tasks, logging, log, stopping, synced } = serving
  const own: WorkerPod[] = []
  await Promise.race([synced, aborted(stopping)])
  if (stopping.aborted) return 0
  tasks.state(true)
  // Not before its policies are known, either.
  if (config.mode === 'shared' && config.self !== undefined && config.proxyEnabled) {
    own.push(await workers.pods.start({ pod: config.self, listeners: 'hbone' }))
  }
  if (config.mode === 'dedicated' && config.workload !== undefined) {
    own.push(await workers.pods.start({ pod: config.workload, listeners: 'all' }))
    tasks.proxy(true)
    tasks.dns(true)
    await aborted(stopping)
    return await drain(config, { own, pods, log, stopping }, 0)
  }
  let status = 0
  const following = {
    socketPath: config.inpodSocket,
    pods,
    log: logging.scope('inpod', 'Pods of the node'),
    random: Math.random,
  }
  try {
    await followNodeAgent({ ...following, onReadiness: tasks.proxy }, stopping)
  } catch (error) {
    log.error('the node agent broke the protocol', { error: error instanceof Error ? error : new Error(String(error)) })
    status = 1
  }
  return await drain(config, { own, pods, log, stopping }, status)
}

/** Lets connections end, and cuts what is left at the deadline. After a failure nothing is waited for. */
async function drain(
  config: ZtunnelConfig,
  draining: Pick<Serving, 'pods' | 'log' | 'stopping'> & { readonly own: readonly WorkerPod[] },
  status: number,
): Promise<number> {
  const { own, pods, log, stopping } = draining
  if (stopping.reason instanceof WorkerError) return 1
  log.info('shutting down: waiting for connections to end', { deadlineMs: config.drainDeadlineMs })
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<'expired'>((resolve) => {
    timer = setTimeout(() => resolve('expired'), config.drainDeadlineMs)
  })
  try {
    const drained = Promise.all([pods.drain(), ...own.map((pod) => pod.drain())]).then(() => 'drained' as const)
    if ((await Promise.race([drained, deadline])) === 'expired') {
      log.warn('drain duration expired with pending connections, forcefully shutting down')
    }
  } finally {
    clearTimeout(timer)
  }
  await Promise.all([pods, ...own].map((one) => one.stop(errorTexts.drainTimeout)))
  return status
}

/** Without these rights nothing would work, and nothing would say why. */
function checkRights({ packetMark }: ZtunnelConfig): void {
  using own = openNetworkNamespace('/proc/self/ns/net')
  runInNamespace(own, () => undefined)
  closeSync(createSocket({ family: 4, type: 'stream', ...(packetMark === undefined ? {} : { mark: packetMark }) }).fd)
}

function checkOwnPorts(config: ZtunnelConfig): void {
  const { proxyEnabled: proxy, dnsProxyEnabled: dns, ipv6Enabled: ipv6 } = config
  checkPortsAreFree({ ...dataPlanePorts(config), proxy, dns, ipv6 })
}

function logPod(log: Scope, change: PodChange): void {
  const { uid, pod } = change
  const fields = { uid, pod: `${pod.namespace}/${pod.name}` }
  if (change.kind === 'pending') log.warn('pod proxy pending', { ...fields, error: change.error })
  else log.info(`pod proxy ${change.kind}`, fields)
}

/** Until the file can be read as revocation lists nobody is let through, and the process says that it is not ready. */
async function followRevocations(
  path: string,
  given: {
    readonly log: Scope
    readonly readiness: Readiness
    readonly workers: Workers
    readonly stack: AsyncDisposableStack
  },
): Promise<void> {
  const { log, readiness, workers, stack } = given
  const ready = readiness.task('revocation lists')
  const warn = (message: string): void => log.warn(message)
  const revocations = stack.use(await openRevocations({ path, whenInvalid: 'closed', warn }))
  const tell = (): void => {
    ready(revocations.state === 'enforcing')
    workers.tellRevocations(revocations.source)
    if (revocations.state === 'enforcing') log.info('revocation lists in force', { path, revoked: revocations.revoked })
  }
  revocations.subscribe(tell)
  tell()
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
