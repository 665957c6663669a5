// What proxies and tools are served: xDS and the certificate service on the gRPC ports, and the debug pages about both.
import { resources } from '../api/index.ts'
import {
  bindCertificateService,
  canonicalTrustDomain,
  createCaMetrics,
  createCertificateService,
  type PodIndex,
  requestOfCall,
  spiffeOf,
  withForeignPeer,
} from '../ca/index.ts'
import type { Graph } from '../collections/index.ts'
import type { AmbientIndex, AmbientInputs } from '../discovery/ambient/index.ts'
import { createConnections } from '../grpc/server/index.ts'
import type { KubeClient } from '../kube/index.ts'
import { createRefusalLog, type Logging, type MetricsRegistry, type Scope } from '../observability/index.ts'
import { presentedChain } from '../util/index.ts'
import type { ServedType } from '../xds/index.ts'
import { createAuthenticators } from './authentication.ts'
import type { OpenAuthority } from './authority.ts'
import type { FollowedConfiguration } from './configuration.ts'
import { type DebugSources, debugPages, debugRoutes } from './debug.ts'
import { exportedTypes, unknownKinds } from './exported-types.ts'
import { followForeignTrust } from './foreign-trust.ts'
import { serveGrpc, servePlainGrpc } from './grpc-server.ts'
import type { Route } from './http-server.ts'
import type { MeshConfigInForce } from './mesh-config.ts'
import { followMeshTrust } from './mesh-trust.ts'
import { nodeAuthorizers } from './node-authorizers.ts'
import { countConnections } from './process-metrics.ts'
import { createProfiler } from './profiling.ts'
import { followServingCertificate } from './serving-certificate.ts'
import type { DiscoverySettings } from './settings.ts'
import { statusTypes } from './status-types.ts'
import {
  createRegistrationMetrics,
  createWorkloadRegistration,
  type WorkloadGroup,
  type WorkloadRegistration,
} from './workload-registration/index.ts'
import { createXdsService, workloadTypes } from './xds-service.ts'

export interface ProxyServicesOptions {
  readonly settings: DiscoverySettings
  readonly version: string
  readonly client: KubeClient
  readonly mesh: MeshConfigInForce
  readonly ca: OpenAuthority
  readonly graph: Graph
  readonly inputs: AmbientInputs
  readonly index: AmbientIndex
  readonly configuration: FollowedConfiguration
  readonly metrics: MetricsRegistry
  readonly logging: Logging
  readonly log: Scope
}

export interface ProxyServices {
  readonly grpc: number
  /** The port without TLS, where one is asked for. */
  readonly plainGrpc: number | undefined
  /** The page below `/debug`. */
  readonly debug: (path: string) => Route | undefined
  readonly registration: WorkloadRegistration
}

/** Resolves once the ports are open; what is opened is closed with the stack. */
export async function serveProxies(options: ProxyServicesOptions, stack: AsyncDisposableStack): Promise<ProxyServices> {
  const { settings, version, client, mesh, ca, graph, inputs, index, metrics, logging, log } = options
  const { cluster, others, remoteClusters, revisions, problems } = options.configuration
  const ownDomains = (): readonly string[] => [mesh.current.trustDomain, ...mesh.current.trustDomainAliases]
  const countEnd = countConnections(metrics, () => [connections])
  const logEnd = createRefusalLog(log)
  const connections = createConnections(settings.connectionLimits, (reason, peer) => {
    countEnd(reason)
    logEnd('a connection is ended', { peer, reason })
  })
  const requestOf = (call: Parameters<typeof requestOfCall>[0]) => ({
    ...requestOfCall(call, ownDomains()),
    accepted: () => connections.of(call)?.connection.admit(),
  })
  const foreign = stack.use(
    followForeignTrust({ mesh, endpoints: settings.spiffeBundleEndpoints, log: logging.scope('ca') }),
  )
  const proxyRequestOf = (call: Parameters<typeof requestOfCall>[0]) => {
    const tls = connections.of(call)?.connection.tls
    const presented = tls === undefined ? [] : presentedChain(tls)
    return withForeignPeer(requestOf(call), presented, ownDomains(), foreign.rootsOf)
  }
  const authenticators = createAuthenticators({
    ...settings.authentication,
    client,
    clusterId: settings.clusterId,
    clusterAliases: settings.clusterAliases,
    remoteClusters,
    trustDomain: () => mesh.current.trustDomain,
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
    problems,
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
    requestOf: proxyRequestOf,
    isForeign: (identity) =>
      !ownDomains()
        .map(canonicalTrustDomain)
        .includes(spiffeOf(identity)?.trustDomain ?? ''),
    connections,
    version,
    metrics,
    log: logging.scope('xds'),
  })
  const podsOf = (clusterId: string): PodIndex | undefined =>
    clusterId === '' || clusterId === settings.clusterId ? cluster.pods : remoteClusters.podsOf(clusterId)
  const certificates = bindCertificateService(
    createCertificateService({
      authority: ca.authority,
      authenticators,
      nodeAuthorizerOf: nodeAuthorizers(settings, podsOf, ownDomains, log),
      metrics: createCaMetrics(metrics, {
        root: () => ca.authority.expiry?.root,
        chain: () => ca.authority.expiry?.chain,
      }),
      audit: logging.scope('ca'),
    }),
    requestOf,
  )
  const serving = stack.use(await followServingCertificate(settings, ca.authority, mesh.current.discoveryAddress, log))
  const grpc = await serveGrpc(
    { settings, connections, log },
    (server) => {
      xds.addTo(server)
      if (settings.servesCertificates) server.addService(certificates.definition, { ...certificates.implementation })
    },
    serving,
  )
  const plain =
    settings.plainGrpcAddress === ''
      ? undefined
      : await servePlainGrpc({ settings, connections, log }, (server) => xds.addToPlain(server))
  stack.defer(async () => {
    xds.close()
    await Promise.all([grpc.close(settings.shutdownMs), plain?.close(settings.shutdownMs)])
  })
  return {
    grpc: grpc.port,
    plainGrpc: plain?.port,
    debug: debugRoutes({
      ...rights,
      sources: debugSources,
      profiler: settings.profiling ? createProfiler() : undefined,
      authenticators,
      requireAuthentication: settings.debugAuth,
    }),
    registration,
  }
}
