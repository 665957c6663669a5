// The node proxy as one process: puts its parts together in the order they need each other, and takes them down again.
import { closeSync, readFileSync } from 'node:fs'
import { createSocket, openNetworkNamespace, raiseDescriptorLimit, runInNamespace } from '../linux/index.ts'
import {
  createMetricsRegistry,
  type Logging,
  registerLogMetrics,
  registerProcessMetrics,
  type Scope,
  startEventLoopMetrics,
} from '../observability/index.ts'
import type { VersionFacts } from './admin/index.ts'
import { type CertificateSource, openCertificateSource } from './certificate-source.ts'
import { openRevocations, type Revocations } from './certificates/index.ts'
import { dumpConfig, type ZtunnelConfig } from './config/index.ts'
import { connectXds } from './control-plane.ts'
import { dataPlaneOptions } from './data-plane-settings.ts'
import {
  checkPortsAreFree,
  createHostnameResolver,
  createPods,
  type DataPlaneServices,
  followNodeAgent,
  type PodProxy,
  type Pods,
  startPodProxy,
} from './dataplane/index.ts'
import { identityOf } from './decisions/index.ts'
import { watchDescriptors } from './descriptors.ts'
import { createDnsAnswerer, createExchange, createForwarder, parseResolvConf } from './dns/index.ts'
import type { Workload } from './model.ts'
import type { OnDemandAddresses } from './on-demand/index.ts'
import { createReadiness, type Readiness } from './readiness.ts'
import { startServers } from './servers.ts'
import { createMeshState, type MeshState } from './state/index.ts'
import { peerOf } from './telemetry/facts.ts'
import {
  createConnectionReports,
  createZtunnelMetrics,
  errorTexts,
  known,
  registerMeshMemoryMetrics,
  sourceLabels,
  type ZtunnelMetrics,
} from './telemetry/index.ts'

/**
 * Runs until the signal aborts; connections in progress then have until the drain deadline. Rejects when the start fails.
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
  else checkPortsAreFree({ ...dataPlaneOptions(config), dns: config.dnsProxyEnabled })

  await using stack = new AsyncDisposableStack()
  stack.use(watchDescriptors({ limit: Number(descriptors.after), log }))
  const shutdown = new AbortController()
  const stopping = AbortSignal.any([signal, shutdown.signal])
  const registry = createMetricsRegistry()
  registerProcessMetrics(registry)
  registerLogMetrics(registry, logging)
  stack.use(startEventLoopMetrics(registry, 'main'))
  const metrics = createZtunnelMetrics(registry, { istioVersion: config.istioVersion })
  const readiness = createReadiness()
  const state = createMeshState(config.node === undefined ? {} : { node: config.node })
  registerMeshMemoryMetrics(registry, state.usage)
  const certificates = openCertificateSource(config, state, logging.scope('identity', 'Certificates'))
  stack.defer(() => certificates.close())
  if (config.localContent !== undefined) state.replace(config.localContent)
  const xdsLog = logging.scope('xds', 'The mesh from the control plane')
  const mesh =
    config.xds === undefined ? undefined : stack.use(connectXds(config, config.xds, { state, metrics, log: xdsLog }))
  const { onDemand } = mesh ?? {}
  const services = await createServices(
    config,
    { state, metrics, logging, certificates, readiness, ...(onDemand === undefined ? {} : { onDemand }) },
    stack,
  )

  const stateReady = readiness.task('state manager')
  const proxyReady = readiness.task(config.mode === 'shared' ? 'workload proxy manager' : 'proxy')
  const dnsReady =
    config.mode === 'dedicated' && config.dnsProxyEnabled ? readiness.task('dns proxy') : (_: boolean) => undefined
  const options = dataPlaneOptions(config)
  const pods = createPods({
    start: (pod, namespace) => startPodProxy({ pod, namespace, options, services, listeners: 'all' }),
    onChange: (change) => {
      if (change.kind === 'started') metrics.proxiesStarted.with({}).inc()
      if (change.kind === 'stopped') metrics.proxiesStopped.with({}).inc()
      const { uid, pod } = change
      const fields = { uid, pod: `${pod.namespace}/${pod.name}` }
      if (change.kind === 'pending') log.warn('pod proxy pending', { ...fields, error: change.error })
      else log.info(`pod proxy ${change.kind}`, fields)
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
      readiness,
      state,
      certificates: certificates.manager,
      ...(config.mode === 'shared' ? { pods } : {}),
      shutDown: () => shutdown.abort(),
    }),
  )

  const own: PodProxy[] = []
  if (config.mode === 'shared' && config.self !== undefined && config.proxyEnabled) {
    const { mark: _, ...unmarked } = options
    own.push(await startPodProxy({ pod: config.self, options: unmarked, services, listeners: 'hbone' }))
  }
  await Promise.race([mesh?.synced, aborted(stopping)])
  if (stopping.aborted) {
    for (const proxy of own) proxy.stop(errorTexts.drained)
    return 0
  }
  stateReady(true)
  if (config.mode === 'dedicated' && config.workload !== undefined) {
    own.push(await startPodProxy({ pod: config.workload, options, services, listeners: 'all' }))
    proxyReady(true)
    dnsReady(true)
    await aborted(stopping)
    return await drain(config, { own, pods, log }, 0)
  }
  let status = 0
  const following = {
    socketPath: config.inpodSocket,
    pods,
    log: logging.scope('inpod', 'Pods of the node'),
    random: Math.random,
  }
  try {
    await followNodeAgent({ ...following, onReadiness: proxyReady }, stopping)
  } catch (error) {
    log.error('the node agent broke the protocol', { error: error instanceof Error ? error : new Error(String(error)) })
    status = 1
  }
  return await drain(config, { own, pods, log }, status)
}

/** Lets connections end, and cuts what is left at the deadline. */
async function drain(
  config: ZtunnelConfig,
  { own, pods, log }: { readonly own: readonly PodProxy[]; readonly pods: Pods; readonly log: Scope },
  status: number,
): Promise<number> {
  log.info('shutting down: waiting for connections to end', { deadlineMs: config.drainDeadlineMs })
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<'expired'>((resolve) => {
    timer = setTimeout(() => resolve('expired'), config.drainDeadlineMs)
  })
  const drained = Promise.all([pods.drain(), ...own.map((proxy) => proxy.drain())]).then(() => 'drained' as const)
  if ((await Promise.race([drained, deadline])) === 'expired') {
    log.warn('drain duration expired with pending connections, forcefully shutting down')
  }
  clearTimeout(timer)
  pods.stop(errorTexts.drainTimeout)
  for (const proxy of own) proxy.stop(errorTexts.drainTimeout)
  return status
}

/** Without these rights nothing would work, and nothing would say why. */
function checkRights({ packetMark }: ZtunnelConfig): void {
  using own = openNetworkNamespace('/proc/self/ns/net')
  runInNamespace(own, () => undefined)
  closeSync(createSocket({ family: 4, type: 'stream', ...(packetMark === undefined ? {} : { mark: packetMark }) }).fd)
}

async function createServices(
  config: ZtunnelConfig,
  given: {
    readonly state: MeshState
    readonly metrics: ZtunnelMetrics
    readonly logging: Logging
    readonly certificates: CertificateSource
    readonly readiness: Readiness
    readonly onDemand?: OnDemandAddresses
  },
  stack: AsyncDisposableStack,
): Promise<DataPlaneServices> {
  const { state, metrics, logging, certificates, onDemand } = given
  const { ipv6Enabled, packetMark, preferredServiceNamespace } = config
  const random = Math.random
  const log = logging.scope('proxy', 'Connections')
  const revocations =
    config.crlPath === undefined ? undefined : await followRevocations(config.crlPath, log, given.readiness, stack)
  const hostnames = createHostnameResolver({ ipv6: ipv6Enabled, random })
  const resolvConf = parseResolvConf(readFileSync('/etc/resolv.conf', 'utf8'))
  const dns = config.dnsProxyEnabled
    ? createDnsAnswerer({
        state,
        metrics,
        logging,
        random,
        ipv6Enabled,
        clusterDomain: config.clusterDomain,
        forwarder: createForwarder({
          resolvConf,
          exchange: createExchange(packetMark === undefined ? {} : { mark: packetMark }),
        }),
        ...(config.mode === 'dedicated' ? { searchDomains: resolvConf.searchDomains } : {}),
        ...(preferredServiceNamespace === undefined ? {} : { preferredServiceNamespace }),
      })
    : undefined
  return {
    state,
    ...(onDemand === undefined ? {} : { onDemand }),
    credentials: certificates.credentials,
    metrics,
    log,
    rbacLog: logging.scope('rbac', 'Policy decisions'),
    random,
    reports: createConnectionReports({ metrics, logging }),
    resolveHostname: (workload, family, source) => {
      metrics.onDemandDns.with(onDemandLabels(workload, source)).inc()
      return hostnames.resolve(workload, family)
    },
    ...(dns === undefined ? {} : { dns }),
    ...(revocations === undefined
      ? {}
      : {
          revocations: {
            check(reporter, chain) {
              const verdict = revocations.check(chain, certificates.authorities())
              if (verdict.kind === 'good') return undefined
              metrics.crlRejections.with({ reporter }).inc()
              return verdict.kind === 'revoked' ? errorTexts.revoked : verdict.reason
            },
            subscribe: revocations.subscribe,
          },
        }),
  }
}

/** Until the file can be read as revocation lists nobody is let through, and the process says that it is not ready. */
async function followRevocations(
  path: string,
  log: Scope,
  readiness: Readiness,
  stack: AsyncDisposableStack,
): Promise<Revocations> {
  const ready = readiness.task('revocation lists')
  const warn = (message: string): void => log.warn(message)
  const revocations = stack.use(await openRevocations({ path, whenInvalid: 'closed', warn }))
  const tell = (): void => {
    ready(revocations.state === 'enforcing')
    if (revocations.state === 'enforcing') log.info('revocation lists in force', { path, revoked: revocations.revoked })
  }
  revocations.subscribe(tell)
  tell()
  return revocations
}

function onDemandLabels({ hostname }: Workload, source: Workload) {
  const labels = sourceLabels(peerOf(source, undefined), identityOf(source))
  return { ...labels, hostname: known(hostname) }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
