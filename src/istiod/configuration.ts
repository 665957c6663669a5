// Everything that is read: the objects of the own cluster, those of remote ones, and what comes from other sources.
import { resources } from '../api/index.ts'
import type { Graph } from '../collections/index.ts'
import { createProblemLog, loadSchemaProblems, type ProblemLog } from '../config/index.ts'
import type { AmbientInputs } from '../discovery/ambient/index.ts'
import type { KubeClient } from '../kube/index.ts'
import type { Logging, MetricsRegistry, Scope } from '../observability/index.ts'
import { type Cluster, configurationKinds, followCluster } from './cluster.ts'
import { openConfiguration } from './config-sources.ts'
import { ignoredKinds, ignoring, nameOf } from './ignored-kinds.ts'
import { countInbound } from './inbound-metrics.ts'
import { type MeshConfigInForce, meshConfigName } from './mesh-config.ts'
import { followOtherConfiguration, type OtherConfiguration, otherKinds } from './other-configuration.ts'
import { followRemoteClusters, type RemoteClusters } from './remote-clusters.ts'
import { kubeconfigsOfPath, kubeconfigsOfSecrets } from './remote-kubeconfigs.ts'
import { followRevisions, type Revisions } from './revisions.ts'
import type { DiscoverySettings } from './settings.ts'
import { watchingNamespace } from './watched-namespace.ts'

export interface ConfigurationOptions {
  readonly settings: DiscoverySettings
  readonly version: string
  readonly client: KubeClient
  readonly mesh: MeshConfigInForce
  readonly graph: Graph
  readonly inputs: AmbientInputs
  readonly metrics: MetricsRegistry
  readonly logging: Logging
  readonly log: Scope
}

export interface FollowedConfiguration {
  readonly cluster: Cluster
  readonly others: OtherConfiguration
  readonly remoteClusters: RemoteClusters
  readonly revisions: Revisions
  readonly problems: ProblemLog
  /** Resolves once everything has been read. */
  readonly synced: Promise<unknown>
}

/** What is opened is closed with the stack. */
export async function followConfiguration(
  options: ConfigurationOptions,
  stack: AsyncDisposableStack,
): Promise<FollowedConfiguration> {
  const { settings, client, mesh, graph, inputs, metrics, logging, log } = options
  const problems = createProblemLog()
  const reading = {
    inputs,
    problems: await loadSchemaProblems(),
    problemLog: problems,
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
  const { source, whereIs } = stack.use(
    openConfiguration({ client: watching, settings, mesh, kinds, log: reading.log }),
  )
  const cluster = stack.use(
    followCluster({
      ...reading,
      client: watching,
      configuration: source,
      whereIs,
      clusterId: settings.clusterId,
      revisions,
    }),
  )
  const others = stack.use(followOtherConfiguration({ ...reading, graph, configuration: source, whereIs, revisions }))
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
      userAgent: `lateen-discovery/${options.version}`,
      metrics,
      log: logging.scope('clusters'),
    }),
  )
  return {
    cluster,
    others,
    remoteClusters,
    revisions,
    problems,
    synced: Promise.all([cluster.synced, others.synced, remoteClusters.settled]),
  }
}
