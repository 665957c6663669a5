// The control plane process: from start to stop.
import { createGraph, type Graph, pacedBy } from '../collections/index.ts'
import type { MeshConfig } from '../config/index.ts'
import { createAmbientIndex, createAmbientInputs } from '../discovery/ambient/index.ts'
import { createKubeClient } from '../kube/index.ts'
import { createMetricsRegistry, type Logging, registerProcessMetrics } from '../observability/index.ts'
import { openAuthority } from './authority.ts'
import { running, untilAborted } from './background.ts'
import { followConfiguration } from './configuration.ts'
import type { Route } from './http-server.ts'
import { logIndexWarnings } from './index-warnings.ts'
import { lead } from './leadership.ts'
import { followMeshConfig } from './mesh-config.ts'
import { countEndpoints, countServices, describeProcess } from './process-metrics.ts'
import { servePages } from './process-pages.ts'
import { serveProxies } from './proxy-services.ts'
import type { DiscoverySettings } from './settings.ts'

export interface DiscoveryProcess {
  readonly settings: DiscoverySettings
  readonly version: string
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
  const http = await servePages(
    {
      settings,
      version,
      metrics,
      logging,
      log,
      isReady: () => isReady && !ending.aborted,
      graph: () => graph,
      debug: (path) => debug(path),
      exit: () => exit.abort(),
    },
    stack,
  )

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

    const shared = { settings, version, client, mesh, graph, inputs, metrics, logging, log }
    const configuration = await followConfiguration(shared, stack)
    await untilAborted(configuration.synced, ending)
    inputs.markSynced()
    await untilAborted(index.whenSynced, ending)
    countServices(metrics, () => index.services.size)
    countEndpoints(metrics, index.endpointCounts)
    stack.defer(logIndexWarnings(index, log))
    log.info('configuration is read', { server: client.server })

    const served = await serveProxies({ ...shared, ca, index, configuration }, stack)
    debug = served.debug
    const { others, ...followed } = configuration
    const { registration } = served
    const leadership = { ...followed, settings, client, others: others.kinds, registration, index, inputs, ca, log }
    stack.defer(running((until) => lead(leadership, until), ending, log))

    isReady = true
    log.info('ready', { http: http.join(' ') })
    options.started?.({
      grpc: served.grpc,
      http,
      ...(served.plainGrpc === undefined ? {} : { plainGrpc: served.plainGrpc }),
    })
    if (!ending.aborted) {
      await new Promise<void>((resolve) => ending.addEventListener('abort', () => resolve(), { once: true }))
    }
    log.info('stopping')
  } catch (error) {
    if (!ending.aborted) throw error
  }
}

function ambientMeshConfig(config: MeshConfig) {
  return { ...config.fields, rootNamespace: config.rootNamespace, trustDomain: config.trustDomain }
}

function summaryOf(report: object): Record<string, string> {
  return Object.fromEntries(
    Object.entries(report).map(([name, value]) => [name, value instanceof Error ? value.message : String(value)]),
  )
}
