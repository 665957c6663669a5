// The control plane process: from start to stop.
import { resources } from '../api/index.ts'
import {
  type AuthorizeImpersonation,
  bindCertificateService,
  createCaMetrics,
  createCertificateService,
  createNodeAuthorizer,
  type PodIndex,
  parseTrustedAccounts,
  requestOfCall,
} from '../ca/index.ts'
import { createGraph, type Graph, pacedBy } from '../collections/index.ts'
import { createProblemLog, loadSchemaProblems, type MeshConfig } from '../config/index.ts'
import { createAmbientIndex, createAmbientInputs } from '../discovery/ambient/index.ts'
import { createKubeClient } from '../kube/index.ts'
import {
  createMetricsRegistry,
  expositionContentType,
  type Logging,
  type MetricsRegistry,
  negotiateExposition,
  registerProcessMetrics,
  renderMetrics,
  type Scope,
} from '../observability/index.ts'
import type { ServedType } from '../xds/index.ts'
import { createAuthenticators } from './authentication.ts'
import { openAuthority } from './authority.ts'
import { configurationKinds, followCluster } from './cluster.ts'
import { openConfiguration } from './config-sources.ts'
import { type DebugSources, debugPages, debugRoutes } from './debug.ts'
import { exportedTypes, unknownKinds } from './exported-types.ts'
import { serveGrpc, servePlainGrpc } from './grpc-server.ts'
import { jsonReply, type Route, serveHttp, textReply } from './http-server.ts'
import { ignoredKinds, ignoring, nameOf } from './ignored-kinds.ts'
import { countInbound } from './inbound-metrics.ts'
import { logIndexWarnings } from './index-warnings.ts'
import { introspectionRoutes } from './introspection.ts'
import { lead } from './leadership.ts'
import { followMeshConfig, meshConfigName } from './mesh-config.ts'
import { followMeshTrust } from './mesh-trust.ts'
import { followOtherConfiguration, otherKinds } from './other-configuration.ts'
import { createProfiler } from './profiling.ts'
import { followRemoteClusters } from './remote-clusters.ts'
import { kubeconfigsOfPath, kubeconfigsOfSecrets } from './remote-kubeconfigs.ts'
import { followRevisions } from './revisions.ts'
import { followServingCertificate } from './serving-certificate.ts'
import type { DiscoverySettings } from './settings.ts'
import { statusTypes } from './status-types.ts'
import { watchingNamespace } from './watched-namespace.ts'
import {
  createRegistrationMetrics,
  createWorkloadRegistration,
  type WorkloadGroup,
} from './workload-registration/index.ts'
import { createXdsService, workloadTypes } from './xds-service.ts'

export interface DiscoveryProcess {
  readonly settings: DiscoverySettings
  readonly version: string
  readonly jwtRule: string
  readonly logging: Logging
  /** Told the ports once everything is served. */
  readonly started?: (ports: DiscoveryPorts) => void
}

export interface DiscoveryPorts {
  readonly grpc: number
  /** The port without TLS, where one is asked for. */
  readonly plainGrpc?: number
  readonly http: readonly string[]
}

/** Runs until the signal aborts, then drains. Rejects when it cannot start at all. */
export async function runDiscovery(options: DiscoveryProcess, signal: AbortSignal): Promise<void> {
  const { settings, version, logging } = options
  const log = logging.scope('discovery')
  await using stack = new AsyncDisposableStack()
  const metrics = createMetricsRegistry()
  registerProcessMetrics(metrics)
  describeProcess(metrics, version)
  const exit = new AbortController()
  const ending = AbortSignal.any([signal, exit.signal])

  let isReady = false
  let graph: Graph | undefined
  let debug: (path: string) => Route | undefined = () => undefined
  const ready: Route = () => (isReady && !ending.aborted ? textReply(200, '') : textReply(503, 'not ready\n'))
  const debugRoute = (path: string) => (/^\/debug(\/|$)/.test(path) ? debug(path) : undefined)
  const failed = (error: unknown) => log.error('an HTTP request failed', { reason: String(error) })
  const metricsPage: Route = async (request) => {
    const format = negotiateExposition(request.headers.accept)
    return { status: 200, body: await renderMetrics(metrics, format), contentType: expositionContentType[format] }
  }

  async function serve(address: string, route: (path: string) => Route | undefined, methods?: ['GET', 'HEAD', 'PUT']) {
    if (address === '') return []
    const server = await serveHttp(address, route, failed, methods)
    stack.defer(() => server.close())
    return [server.address]
  }

  const http = [
    ...(await serve(settings.httpAddress, (path) =>
      path === '/ready' ? ready : settings.debugOnHttp ? debugRoute(path) : undefined,
    )),
    ...(await serve(settings.monitoringAddress, (path) =>
      path === '/metrics' ? metricsPage : path === '/version' ? () => jsonReply({ version }) : debugRoute(path),
    )),
    ...(await serve(
      settings.introspectionAddress,
      introspectionRoutes({
        logging,
        graph: () => graph,
        version,
        startedAt: new Date(),
        exit: () => exit.abort(),
      }),
      ['GET', 'HEAD', 'PUT'],
    )),
  ]

  const client = await createKubeClient({
    ...(settings.kubeconfig === undefined ? {} : { kubeconfig: settings.kubeconfig }),
    userAgent: `lateen-discovery/${version}`,
    log: logging.scope('kube'),
  })
  stack.defer(() => client.close())

  try {
    const mesh = stack.use(followMeshConfig(client, settings, log))
    await untilAborted(mesh.synced, ending)
    const ca = await openAuthority({ client, settings, mesh: () => mesh.current, log: logging.scope('ca') }, ending)
    stack.defer(running(ca.follow, ending, log))

    const graphLog = logging.scope('collections')
    graph = createGraph({
      pace: pacedBy(10),
      report: (report) => graphLog.error('a derivation failed', { ...summaryOf(report) }),
    })
    const inputs = createAmbientInputs(graph)
    const takeMesh = (): void =>
      inputs.graph.transaction(() => {
        inputs.meshConfig.set(ambientMeshConfig(mesh.current))
        inputs.meshNetworks.set(mesh.networks)
      })
    takeMesh()
    stack.defer(mesh.subscribe(takeMesh))
    const index = createAmbientIndex({ inputs, settings: settings.ambient })

    const problemLog = createProblemLog()
    const reading = {
      inputs,
      problems: await loadSchemaProblems(),
      problemLog,
      inbound: countInbound(metrics),
      log: logging.scope('config'),
    }
    if (settings.watchNamespace !== '') {
      const watched = { namespace: settings.watchNamespace }
      log.warn(
        'one namespace is read alone: what others hold does not count, be it policies of the root namespace',
        watched,
      )
    }
    const kinds = [...configurationKinds.map((kind) => resources[kind]), ...otherKinds]
    const ignored = ignoredKinds(kinds, settings.kinds)
    if (ignored.length > 0) {
      log.warn('kinds of PILOT_IGNORE_RESOURCES are not read: what they say does not count, be it policies', {
        kinds: ignored.map(nameOf).join(' '),
      })
    }
    const watching = ignoring(watchingNamespace(client, settings.watchNamespace), ignored)
    const revisions = stack.use(followRevisions(client, settings.revision, settings.namespace))
    const configuration = stack.use(
      openConfiguration({
        client: watching,
        settings,
        mesh,
        kinds,
        log: reading.log,
      }),
    )
    const cluster = stack.use(
      followCluster({
        ...reading,
        client: watching,
        configuration: configuration.source,
        whereIs: configuration.whereIs,
        clusterId: settings.clusterId,
        revisions,
      }),
    )
    const others = stack.use(
      followOtherConfiguration({
        ...reading,
        graph,
        configuration: configuration.source,
        whereIs: configuration.whereIs,
        revisions,
      }),
    )
    const remoteClusters = stack.use(
      followRemoteClusters({
        ...reading,
        kubeconfigs:
          settings.remoteKubeconfigPath === ''
            ? kubeconfigsOfSecrets(client, settings.clusterRegistriesNamespace)
            : kubeconfigsOfPath(settings.remoteKubeconfigPath, logging.scope('clusters')),
        systemNamespace: settings.namespace,
        watchNamespace: settings.watchNamespace,
        ignoredKinds: ignored,
        meshConfigName: meshConfigName(settings),
        localId: settings.clusterId,
        isMultiNetwork: settings.ambient.multiNetwork,
        allowedOptions: settings.allowedKubeconfigOptions,
        timeoutMs: settings.remoteClusterTimeoutMs,
        userAgent: `lateen-discovery/${version}`,
        metrics,
        log: logging.scope('clusters'),
      }),
    )
    await untilAborted(Promise.all([cluster.synced, others.synced, remoteClusters.settled]), ending)
    inputs.markSynced()
    await untilAborted(index.whenSynced, ending)
    countServices(metrics, () => index.services.size)
    stack.defer(logIndexWarnings(index, log))
    log.info('configuration is read', { server: client.server })

    const requestOf = (call: Parameters<typeof requestOfCall>[0]) =>
      requestOfCall(call, [mesh.current.trustDomain, ...mesh.current.trustDomainAliases])
    const authenticators = createAuthenticators({
      client,
      clusterId: settings.clusterId,
      clusterAliases: settings.clusterAliases,
      remoteClusters,
      audiences: settings.tokenAudiences,
      trustDomain: () => mesh.current.trustDomain,
      jwtRule: options.jwtRule,
      tokenIssuer: settings.tokenIssuer,
      trustedGatewayCidrs: settings.trustedGatewayCidrs,
    })
    const trust = settings.certificates.isMultiRoot
      ? [stack.use(followMeshTrust({ authority: ca.authority, mesh, log: logging.scope('ca') }))]
      : []
    const registration = stack.use(
      createWorkloadRegistration({
        ...settings.registration,
        client,
        groups: others.informer<WorkloadGroup>(resources.workloadGroups),
        entries: cluster.informers.workloadEntries,
        controller: settings.podName,
        maxConnectionAgeMs: settings.maxConnectionAgeMs,
        metrics: createRegistrationMetrics(metrics),
        log: logging.scope('registration'),
      }),
    )
    const exporting = { inputs, index, others: others.kinds, settings, mesh }
    const types: readonly ServedType[] = [
      ...workloadTypes(index),
      ...trust.map(({ source }) => ({ source, isWildcard: true })),
      ...exportedTypes(exporting),
    ]
    const rights = { systemNamespace: settings.namespace, allowedNamespaces: settings.debugNamespaces }
    const debugSources: DebugSources = {
      connections: () => xds.connections(),
      graph,
      inputs,
      others: others.kinds,
      index,
      sources: types.map(({ source }) => source),
      meshConfig: () => mesh.current,
      meshNetworks: () => mesh.networks,
      remoteClusters: () => remoteClusters.statuses(),
      revision: () => ({ revision: settings.revision, tags: revisions.tags }),
      problems: problemLog,
      clusterId: settings.clusterId,
      version,
      pushAll: () => xds.pushAll(),
      disconnect: settings.adminPages ? (connection) => xds.disconnect(connection) : undefined,
    }
    const xds = createXdsService({
      settings,
      types,
      oneShots: statusTypes({
        ...rights,
        pages: debugPages(debugSources),
        connections: () => xds.connections(),
        requireAuthentication: settings.debugAuth,
      }),
      otherType: unknownKinds(exporting),
      attend: ({ node, identities }) => registration.connected({ ...node, identities }),
      authenticators,
      requestOf,
      version,
      metrics,
      log: logging.scope('xds'),
    })
    debug = debugRoutes({
      ...rights,
      sources: debugSources,
      profiler: settings.profiling ? createProfiler() : undefined,
      authenticators,
      requireAuthentication: settings.debugAuth,
    })
    const podsOf = (clusterId: string): PodIndex | undefined =>
      clusterId === '' || clusterId === settings.clusterId ? cluster.pods : remoteClusters.podsOf(clusterId)
    const certificates = bindCertificateService(
      createCertificateService({
        authority: ca.authority,
        authenticators,
        nodeAuthorizerOf: nodeAuthorizers(settings, podsOf, () => mesh.current, log),
        metrics: createCaMetrics(metrics, {
          root: () => ca.authority.expiry?.root,
          chain: () => ca.authority.expiry?.chain,
        }),
        audit: logging.scope('ca'),
      }),
      requestOf,
    )
    const serving = stack.use(
      await followServingCertificate(settings, ca.authority, mesh.current.discoveryAddress, log),
    )
    const grpc = await serveGrpc(
      settings,
      serving,
      (server) => {
        xds.addTo(server)
        if (settings.servesCertificates) server.addService(certificates.definition, { ...certificates.implementation })
      },
      log,
    )
    const plain =
      settings.plainGrpcAddress === ''
        ? undefined
        : await servePlainGrpc(settings, (server) => xds.addToPlain(server), log)
    stack.defer(async () => {
      xds.close()
      await Promise.all([grpc.close(settings.shutdownMs), plain?.close(settings.shutdownMs)])
    })
    const leadership = {
      settings,
      client,
      cluster,
      others: others.kinds,
      revisions,
      registration,
      remoteClusters,
      index,
      inputs,
      ca,
      problems: problemLog,
      log,
    }
    stack.defer(running((until) => lead(leadership, until), ending, log))

    isReady = true
    log.info('ready', { http: http.join(' ') })
    options.started?.({ grpc: grpc.port, http, ...(plain === undefined ? {} : { plainGrpc: plain.port }) })
    if (!ending.aborted) {
      await new Promise<void>((resolve) => ending.addEventListener('abort', () => resolve(), { once: true }))
    }
    log.info('stopping')
  } catch (error) {
    if (!ending.aborted) throw error
  }
}

function describeProcess(metrics: MetricsRegistry, version: string): void {
  metrics
    .gauge<'version'>({ name: 'pilot_info', help: 'Pilot version and build information.', labels: ['version'] })
    .with({ version })
    .set(1)
  const uptime = metrics.gauge({ name: 'istiod_uptime_seconds', help: 'Current istiod server uptime in seconds' })
  metrics.beforeCollect(() => uptime.with({}).set(process.uptime()))
}

function countServices(metrics: MetricsRegistry, count: () => number): void {
  const services = metrics.gauge({ name: 'pilot_services', help: 'Total services known to pilot.' }).with({})
  metrics.beforeCollect(() => services.set(count()))
}

function nodeAuthorizers(
  settings: DiscoverySettings,
  podsOf: (clusterId: string) => PodIndex | undefined,
  mesh: () => MeshConfig,
  log: Scope,
): (clusterId: string) => AuthorizeImpersonation | undefined {
  const trustedAccounts = parseTrustedAccounts(settings.trustedNodeAccounts, (message) => log.warn(message))
  if (trustedAccounts.size === 0) return () => undefined
  return (clusterId) => {
    const pods = podsOf(settings.clusterAliases.get(clusterId) ?? clusterId)
    if (pods === undefined) return undefined
    return createNodeAuthorizer({
      trustedAccounts,
      trustDomains: () => [mesh().trustDomain, ...mesh().trustDomainAliases],
      pods,
    })
  }
}

function ambientMeshConfig(config: MeshConfig) {
  return { ...config.fields, rootNamespace: config.rootNamespace, trustDomain: config.trustDomain }
}

/** Starts work that ends with the process; the returned function ends it and waits for it. */
function running(work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal, log: Scope): () => Promise<void> {
  const stop = new AbortController()
  const done = work(AbortSignal.any([signal, stop.signal])).catch((error: unknown) => {
    if (!stop.signal.aborted && !signal.aborted) log.error('background work ended', { reason: String(error) })
  })
  return async () => {
    stop.abort()
    await done
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
