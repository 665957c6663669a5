// What the control plane serves over xDS, and to whom.
import type { DescService } from '@bufbuild/protobuf'
import { type Server, status } from '@grpc/grpc-js'
import { type AuthenticationRequest, type Authenticator, authenticate, type requestOfCall } from '../ca/index.ts'
import type { AmbientIndex } from '../discovery/ambient/index.ts'
import type { GrpcConnections } from '../grpc/server/index.ts'
import type { MetricsRegistry, Scope } from '../observability/index.ts'
import { ads, ca, security, workload } from '../proto/index.ts'
import {
  type AuthenticateCaller,
  createXdsServer,
  type OneShotType,
  type ServedType,
  StreamError,
  type XdsServer,
  type XdsServerOptions,
} from '../xds/index.ts'
import { addReflection } from './reflection.ts'
import type { DiscoverySettings } from './settings.ts'

export interface XdsServiceOptions {
  readonly settings: DiscoverySettings
  readonly types: readonly ServedType[]
  readonly oneShots: readonly OneShotType[]
  readonly otherType: XdsServerOptions['otherType']
  readonly attend: XdsServerOptions['attend']
  readonly authenticators: readonly Authenticator[]
  readonly requestOf: (call: Parameters<typeof requestOfCall>[0]) => AuthenticationRequest
  /** Whether an identity is of another trust domain, and gives no rights. */
  readonly isForeign: (identity: string) => boolean
  readonly connections: Pick<GrpcConnections, 'of'>
  readonly version: string
  readonly metrics: MetricsRegistry
  readonly log: Scope
}

const certificateService = ca.IstioCertificateService
/** Of what is in the answers. */
const resourceFiles = [workload.AddressSchema.file, security.AuthorizationSchema.file]

/** In the order in which they are pushed. */
export function workloadTypes(index: AmbientIndex): readonly ServedType[] {
  return [
    { source: index.authorizations, isWildcard: true, removals: 'last' },
    { source: index.addresses, isWildcard: true },
    { source: index.workloads, isWildcard: true },
  ]
}

export interface XdsService extends Pick<XdsServer, 'connections' | 'pushAll' | 'disconnect' | 'close'> {
  addTo(server: Server): void
  /** For a server without TLS. */
  addToPlain(server: Server): void
}

export function createXdsService(options: XdsServiceOptions): XdsService {
  const { settings, connections } = options
  const authenticated: AuthenticateCaller = async (call) => {
    const outcome = await authenticate(options.authenticators, options.requestOf(call))
    if (outcome.kind === 'refused') throw new Error(outcome.reasons.join('; '))
    return outcome.caller.identities
  }
  const nobody: AuthenticateCaller = async (call) => {
    connections.of(call)?.connection.admit()
    return undefined
  }
  const xds = createXdsServer({
    types: options.types,
    oneShots: options.oneShots,
    otherType: options.otherType,
    attend: options.attend,
    authenticate: authenticated,
    checkNodeIdentity: settings.checkNodeIdentity,
    isForeign: options.isForeign,
    clusterAliases: settings.clusterAliases,
    admitNode: (type) => {
      if (type !== 'ztunnel' || settings.servesNodeProxies) return
      throw new StreamError(status.FAILED_PRECONDITION, 'ztunnel requires PILOT_ENABLE_AMBIENT=true')
    },
    controlPlane: JSON.stringify({ Component: 'istiod', ID: settings.podName, Info: { version: options.version } }),
    version: options.version,
    quietTimes: settings.quietTimes,
    refusesFirst: settings.warmsUp,
    streamsPerSecond: settings.streamsPerSecond,
    transportOf: (call) => connections.of(call),
    sendTimeoutMs: settings.sendTimeoutMs,
    metrics: options.metrics,
    log: options.log,
  })
  function describe(server: Server, callers: AuthenticateCaller, others: readonly DescService[]): void {
    const services = [ads.AggregatedDiscoveryService, ...others]
    addReflection(server, {
      services: services.map(({ typeName }) => typeName),
      files: [...services.map(({ file }) => file), ...resourceFiles],
      authenticate: callers,
    })
  }
  return {
    connections: () => xds.connections(),
    pushAll: () => xds.pushAll(),
    disconnect: (connection) => xds.disconnect(connection),
    close: () => xds.close(),
    // Which door a caller came through is known by the server: TLS sockets without a client certificate look like plain ones to grpc-js.
    addTo(server) {
      const callers = settings.authenticates.onTls ? authenticated : nobody
      xds.addTo(server, callers)
      describe(server, callers, settings.servesCertificates ? [certificateService] : [])
    },
    addToPlain(server) {
      const callers = settings.authenticates.onPlaintext ? authenticated : nobody
      xds.addTo(server, callers)
      describe(server, callers, [])
    },
  }
}
