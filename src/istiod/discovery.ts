// The control plane process: from start to stop.
import { status } from '@grpc/grpc-js'
import {
  type AuthorizeImpersonation,
  authenticate,
  bindCertificateService,
  createCaMetrics,
  createCertificateService,
  createNodeAuthorizer,
  parseTrustedAccounts,
  requestOfCall,
} from '../ca/index.ts'
import { createGraph, pacedBy } from '../collections/index.ts'
import { loadSchemaProblems, type MeshConfig } from '../config/index.ts'
import { createAmbientIndex, createAmbientInputs } from '../discovery/ambient/index.ts'
import { createKubeClient } from '../kube/index.ts'
import {
  createMetricsRegistry,
  expositionContentType,
  type Logging,
  negotiateExposition,
  registerProcessMetrics,
  renderMetrics,
  type Scope,
} from '../observability/index.ts'
import { createXdsServer, StreamError } from '../xds/index.ts'
import { createAuthenticators } from './authentication.ts'
import { openAuthority } from './authority.ts'
import { type Cluster, followCluster } from './cluster.ts'
import { debugRoutes } from './debug.ts'
import { serveGrpc } from './grpc-server.ts'
import { jsonReply, type Route, serveHttp, textReply } from './http-server.ts'
import { lead } from './leadership.ts'
import { followMeshConfig } from './mesh-config.ts'
import type { DiscoverySettings } from './settings.ts'

export interface DiscoveryProcess {
  readonly settings: DiscoverySettings
  readonly version: string
  readonly jwtRule: string
  readonly logging: Logging
  /** Told the ports once everything is served. */
  readonly started?: (ports: { readonly grpc: number; readonly http: readonly string[] }) => void
}

/** Runs until the signal aborts, then drains. Rejects when it cannot start at all. */
export async function runDiscovery(options: DiscoveryProcess, signal: AbortSignal): Promise<void> {
  const { settings, version, logging } = options
  const log = logging.scope('discovery')
  await using stack = new AsyncDisposableStack()
  const metrics = createMetricsRegistry()
  registerProcessMetrics(metrics)
  metrics
    .gauge<'version'>({ name: 'pilot_info', help: 'Pilot version and build information.', labels: ['version'] })
    .with({ version })
    .set(1)

  let isReady = false
  let debug: (path: string) => Route | undefined = () => undefined
  const ready: Route = () => (isReady && !signal.aborted ? textReply(200, '') : textReply(503, 'not ready\n'))
  const debugRoute = (path: string) => (/^\/debug(\/|$)/.test(path) ? debug(path) : undefined)
  const failed = (error: unknown) => log.error('an HTTP request failed', { reason: String(error) })
  const http = await serveHttp(
    settings.httpAddress,
    (path) => (path === '/ready' ? ready : settings.debugOnHttp ? debugRoute(path) : undefined),
    failed,
  )
  stack.defer(() => http.close())
  const metricsPage: Route = (request) => {
    const format = negotiateExposition(request.headers.accept)
    return { status: 200, body: renderMetrics(metrics, format), contentType: expositionContentType[format] }
  }
  const monitoring = await serveHttp(
    settings.monitoringAddress,
    (path) =>
      path === '/metrics' ? metricsPage : path === '/version' ? () => jsonReply({ version }) : debugRoute(path),
    failed,
  )
  stack.defer(() => monitoring.close())

  const client = await createKubeClient({
    ...(settings.kubeconfig === undefined ? {} : { kubeconfig: settings.kubeconfig }),
    userAgent: `lateen-discovery/${version}`,
    log: logging.scope('kube'),
  })
  stack.defer(() => client.close())

  try {
    const mesh = stack.use(followMeshConfig(client, settings, log))
    await untilAborted(mesh.synced, signal)
    const ca = await openAuthority(client, settings, mesh.current.trustDomain, logging.scope('ca'), signal)
    stack.defer(ending(ca.follow, signal, log))

    const graphLog = logging.scope('collections')
    const graph = createGraph({
      pace: pacedBy(10),
      report: (report) => graphLog.error('a derivation failed', { ...summaryOf(report) }),
    })
    const inputs = createAmbientInputs(graph)
    inputs.meshConfig.set(ambientMeshConfig(mesh.current))
    stack.defer(mesh.subscribe((config) => inputs.meshConfig.set(ambientMeshConfig(config))))
    const index = createAmbientIndex({ inputs, settings: settings.ambient })
    const cluster = stack.use(
      followCluster({
        client,
        clusterId: settings.clusterId,
        revision: settings.revision,
        inputs,
        problems: await loadSchemaProblems(),
        log: logging.scope('config'),
      }),
    )
    await untilAborted(cluster.synced, signal)
    inputs.markSynced()
    await untilAborted(index.whenSynced, signal)
    log.info('configuration is read', { server: client.server })

    const requestOf = (call: Parameters<typeof requestOfCall>[0]) =>
      requestOfCall(call, [mesh.current.trustDomain, ...mesh.current.trustDomainAliases])
    const authenticators = createAuthenticators({
      client,
      clusterId: settings.clusterId,
      audiences: settings.tokenAudiences,
      trustDomain: () => mesh.current.trustDomain,
      jwtRule: options.jwtRule,
    })
    const sources = [index.authorizations, index.addresses, index.workloads]
    const xds = createXdsServer({
      types: [
        { source: index.authorizations, isWildcard: true, removals: 'last' },
        { source: index.addresses, isWildcard: true },
        { source: index.workloads, isWildcard: true },
      ],
      authenticate: async (call) => {
        const outcome = await authenticate(authenticators, requestOf(call))
        if (outcome.kind === 'refused') throw new Error(outcome.reasons.join('; '))
        return outcome.caller.identities
      },
      checkNodeIdentity: settings.checkNodeIdentity,
      admitNode: (type) => {
        if (type !== 'ztunnel' || settings.servesNodeProxies) return
        throw new StreamError(status.FAILED_PRECONDITION, 'ztunnel requires PILOT_ENABLE_AMBIENT=true')
      },
      controlPlane: JSON.stringify({ Component: 'istiod', ID: settings.podName, Info: { version } }),
      version,
      quietTimes: settings.quietTimes,
      streamsPerSecond: settings.streamsPerSecond,
      metrics,
      log: logging.scope('xds'),
    })
    debug = debugRoutes({
      connections: xds.connections,
      graph,
      sources,
      meshConfig: () => mesh.current,
      clusterId: settings.clusterId,
      version,
      systemNamespace: settings.namespace,
      allowedNamespaces: settings.debugNamespaces,
      authenticators,
      requireAuthentication: settings.debugAuth,
    })
    const certificates = bindCertificateService(
      createCertificateService({
        authority: ca.authority,
        authenticators,
        nodeAuthorizerOf: nodeAuthorizers(settings, cluster, () => mesh.current, log),
        metrics: createCaMetrics(metrics, {
          root: () => ca.authority.material.rootNotAfter,
          chain: () => ca.authority.material.notAfter,
        }),
        audit: logging.scope('ca'),
      }),
      requestOf,
    )
    const grpc = await serveGrpc(
      settings,
      ca.authority,
      mesh.current.discoveryAddress,
      (server) => {
        xds.addTo(server)
        server.addService(certificates.definition, { ...certificates.implementation })
      },
      log,
    )
    stack.defer(async () => {
      xds.close()
      await grpc.close(settings.shutdownMs)
    })
    stack.defer(ending((until) => lead({ settings, client, cluster, index, inputs, ca, log }, until), signal, log))

    isReady = true
    log.info('ready', { http: http.address, monitoring: monitoring.address })
    options.started?.({ grpc: grpc.port, http: [http.address, monitoring.address] })
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    log.info('stopping')
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

function nodeAuthorizers(
  settings: DiscoverySettings,
  cluster: Cluster,
  mesh: () => MeshConfig,
  log: Scope,
): (clusterId: string) => AuthorizeImpersonation | undefined {
  const trustedAccounts = parseTrustedAccounts(settings.trustedNodeAccounts, (message) => log.warn(message))
  if (trustedAccounts.size === 0) return () => undefined
  const authorizer = createNodeAuthorizer({
    trustedAccounts,
    trustDomains: () => [mesh().trustDomain, ...mesh().trustDomainAliases],
    pods: cluster.pods,
  })
  return (clusterId) => (clusterId === '' || clusterId === settings.clusterId ? authorizer : undefined)
}

function ambientMeshConfig(config: MeshConfig) {
  return { ...config.fields, rootNamespace: config.rootNamespace, trustDomain: config.trustDomain }
}

/** Starts work that ends with the process; the returned function ends it and waits for it. */
function ending(work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal, log: Scope): () => Promise<void> {
  const stop = new AbortController()
  const running = work(AbortSignal.any([signal, stop.signal])).catch((error: unknown) => {
    if (!stop.signal.aborted && !signal.aborted) log.error('background work ended', { reason: String(error) })
  })
  return async () => {
    stop.abort()
    await running
  }
}

async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const abort = (): void => aborted.reject(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

function summaryOf(report: object): Record<string, string> {
  return Object.fromEntries(
    Object.entries(report).map(([name, value]) => [name, value instanceof Error ? value.message : String(value)]),
  )
}
