// The node agent: installs the plugin, serves it, enrols pods, and tells the node proxies. One a node.

import type { Namespace, Pod } from 'kubernetes-types/core/v1.js'
import { type KubeObject, resources } from '../../api/index.ts'
import { createKubeClient, type KubeClient } from '../../kube/index.ts'
import { expositionContentType, type Logging, negotiateExposition, renderMetrics } from '../../observability/index.ts'
import { createRedirector, type Redirector, runTool, selectBackend } from '../../redirect/index.ts'
import { startInstaller } from '../install/installer.ts'
import type { AgentSettings } from '../settings.ts'
import { createEnrollmentController } from './controller.ts'
import { createEnrollment } from './enrollment.ts'
import { followNamespaces, followPods } from './follow.ts'
import { kubeletUid } from './kubelet-uid.ts'
import { type AgentMetrics, createAgentMetrics } from './metrics.ts'
import { findPodNamespaces } from './namespaces.ts'
import { servePages } from './pages.ts'
import { startPluginServer } from './plugin-server.ts'
import { shouldCleanUp } from './shutdown.ts'
import { startZdsServer } from './zds-server.ts'

export interface AgentOptions {
  readonly settings: AgentSettings
  readonly env: Readonly<Record<string, string | undefined>>
  readonly logging: Logging
  /** What the installed plugin runs. */
  readonly pluginCommand: readonly string[]
  /** Aborted when the agent is to stop. */
  readonly signal: AbortSignal
}

const serviceAccountDir = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Runs the agent until the signal. Rejects when it can't start. */
export async function runAgent(options: AgentOptions): Promise<void> {
  const { settings, logging, signal } = options
  const log = logging.scope('cni-agent')
  const write = (level: 'debug' | 'info' | 'warn' | 'error', message: string): void => log.log(level, message)
  const metrics = createAgentMetrics()
  const state = { watchReady: !settings.ambientEnabled, installReady: () => false }
  await using stack = new AsyncDisposableStack()
  stack.use(
    await servePages(settings.monitoringPort, async (path, accept) => {
      if (path !== '/metrics') return undefined
      const format = negotiateExposition(accept)
      return { status: 200, type: expositionContentType[format], body: await renderMetrics(metrics.registry, format) }
    }),
  )
  stack.use(
    await servePages(settings.healthPort, (path) => {
      if (path === '/healthz') return { status: 200, type: 'text/plain', body: 'ok' }
      if (path !== '/readyz') return undefined
      const ready = state.watchReady && state.installReady()
      return { status: ready ? 200 : 503, type: 'text/plain', body: ready ? 'ready' : 'not ready' }
    }),
  )
  const client = await createKubeClient()
  stack.defer(() => client.close())
  const ambient = settings.ambientEnabled ? await startAmbient(options, client, metrics, stack, write) : undefined
  if (signal.aborted) {
    log.info('node agent stops before it knew its pods; everything stays')
    return
  }
  state.watchReady = true
  const installer = startInstaller({
    settings,
    command: options.pluginCommand,
    serviceAccountDir,
    env: options.env,
    log: write,
    onPass: (result) => {
      metrics.installs.with({ result }).inc()
      metrics.installReady.with({}).set(result === 'SUCCESS' ? 1 : 0)
    },
  })
  stack.use(installer)
  state.installReady = () => installer.ready
  log.info('node agent started', { node: settings.nodeName, ambient: settings.ambientEnabled })
  await aborted(signal)
  const decision = await shouldCleanUp(client, settings)
  log.info('node agent stops', { cleanUp: decision.cleanUp, reason: decision.reason })
  if (decision.cleanUp) {
    installer.uninstall()
    await ambient?.redirector.unprogramHost()
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
}

type Write = (level: 'debug' | 'info' | 'warn' | 'error', message: string) => void

/** Undefined when the signal comes first: an API server that does not answer must not keep the agent from ending. */
async function startAmbient(
  { settings, logging, signal }: AgentOptions,
  client: KubeClient,
  metrics: AgentMetrics,
  stack: AsyncDisposableStack,
  write: Write,
): Promise<{ redirector: Redirector } | undefined> {
  const { backend, reason } = await selectBackend(settings.nativeNftables, settings.hostNetns)
  write('info', `packet filter: ${backend} (${reason})`)
  const redirector = createRedirector(
    {
      backend,
      enableIpv6: settings.enableIpv6,
      redirectDns: settings.redirectDns,
      probeSourceIpv4: settings.probeSourceIpv4,
      probeSourceIpv6: settings.probeSourceIpv6,
    },
    settings.forceIptablesBinary,
    settings.hostNetns,
  )
  const proc = `${settings.hostPrefix}/proc`
  await redirector.programHost(backend === 'nftables' ? kubeletUid(proc) : undefined)
  const search = { proc, ...(settings.podNetnsDir === '' ? {} : { netnsDir: settings.podNetnsDir }) }
  const enrollment = createEnrollment({
    redirector,
    client,
    reconcile: settings.reconcileOnStartup,
    findNamespaces: (pods) => findPodNamespaces(pods, search, runTool),
    log: write,
  })
  stack.use(enrollment)
  const { selectors, excludeNamespaces, systemNamespace } = settings
  const controller = createEnrollmentController({
    settings: { selectors, excludeNamespaces, systemNamespace },
    enrollment,
    log: write,
  })
  stack.use(controller)
  const pods = client.informer<KubeObject>(resources.pods, { fieldSelector: `spec.nodeName=${settings.nodeName}` })
  stack.use(pods)
  const namespaces = client.informer<KubeObject>(resources.namespaces)
  stack.use(namespaces)
  await Promise.race([Promise.all([pods.synced, namespaces.synced]), aborted(signal)])
  if (signal.aborted) return undefined
  followPods(pods, controller, (type) => metrics.reconcileEvents.with({ type }).inc())
  followNamespaces(namespaces, controller)
  // What is known now is taken over before any proxy is served, so that the first one gets a complete snapshot.
  await controller.start(pods.list() as Pod[], namespaces.list() as Namespace[])
  const proxies = startZdsServer({
    path: settings.ztunnelUdsAddress,
    served: enrollment.served,
    log: write,
    onConnections: (count) => metrics.proxies.with({}).set(count),
  })
  stack.use(proxies)
  enrollment.useProxies(proxies)
  stack.use(
    await startPluginServer({
      runDir: settings.agentRunDir,
      selectors,
      find: controller.find,
      enroll: (pod, netns, ips) => enrollment.enrollFromPlugin(pod, `${settings.hostPrefix}${netns}`, ips),
      onAnswer: (status) => metrics.pluginRequests.with({ response_code: String(status) }).inc(),
      log: write,
      pluginLog: relogPlugin(logging),
    }),
  )
  return { redirector }
}

/** Writes the plugin's lines into the agent's own log, with their levels. */
function relogPlugin(logging: Logging): (line: string) => void {
  const scope = logging.scope('cni-plugin')
  return (line) => {
    let record: { level?: string; msg?: string }
    try {
      record = JSON.parse(line) as { level?: string; msg?: string }
    } catch {
      record = { msg: line }
    }
    const level =
      record.level === 'debug' || record.level === 'warn' || record.level === 'error' ? record.level : 'info'
    scope.log(level, record.msg ?? line)
  }
}
