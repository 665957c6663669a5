// The xDS server: accepts streams, knows its clients, and brings them the changes of its sources.
import { type Server, status } from '@grpc/grpc-js'
import type { CallTransport } from '../../grpc/server/index.ts'
import { createRefusalLog, type MetricsRegistry, type Scope } from '../../observability/index.ts'
import type { core } from '../../proto/index.ts'
import type { OneShotType, XdsClient } from '../types.ts'
import { type Attend, attendStream, type HealthReport } from './attendance.ts'
import { type Connection, createConnection } from './connection.ts'
import { createFanOut } from './fan-out.ts'
import { createXdsMetrics, type XdsMetrics } from './metrics.ts'
import { authorizeNode, type ProxyNode, parseNode, withoutAlias } from './node.ts'
import { type CallOutlet, type Outlet, outletOf } from './outlet.ts'
import { createPushLane, type QuietTimes, type Wave } from './push-lane.ts'
import { type Request, readRequest } from './request.ts'
import { createSendBudget } from './send-budget.ts'
import { type AnyCall, discoveryServiceOf } from './service.ts'
import { sharedListOf } from './shared-content.ts'
import { StreamError } from './stream-error.ts'
import { createStreamRate } from './stream-rate.ts'
import type { ServedType } from './watch.ts'

export interface XdsServerOptions {
  /** In the order in which changes are pushed and requests waiting together are answered. */
  readonly types: readonly ServedType[]
  /** Types that are answered once a request. */
  readonly oneShots?: readonly OneShotType[]
  /** What a type that is none of these is answered with; undefined: nothing. */
  readonly otherType?: ((client: XdsClient, typeUrl: string) => OneShotType | undefined) | undefined
  readonly authenticate: AuthenticateCaller
  /** Check the node's namespace and service account against the identities. */
  readonly checkNodeIdentity: boolean
  /** An identity of another trust domain says which node its holder is, and gives it no rights: it is passed on to nobody. By default none is. */
  readonly isForeign?: (identity: string) => boolean
  /** The cluster of each other name that nodes may know it by. */
  readonly clusterAliases?: ReadonlyMap<string, string>
  /** Throws a StreamError for nodes that are not served. */
  readonly admitNode?: (type: ProxyNode['type']) => void
  /** Told of each client before it is served, and of its end. */
  readonly attend?: Attend | undefined
  /** Further conditions than that the sources are synced. */
  readonly isReady?: () => boolean
  /** The first stream after the start is refused, whoever opens it: it comes from what only wants the process to be loaded. */
  readonly refusesFirst?: boolean
  readonly controlPlane: string
  readonly version: string
  readonly quietTimes?: QuietTimes
  readonly streamsPerSecond?: number
  /** What a call is made over, where that is known: a client that hangs can be cut off then. */
  readonly transportOf?: ((call: AnyCall) => CallTransport | undefined) | undefined
  /** A client that takes nothing of a message for this time, or up to twice as long, is cut off; 0, and where nothing is said: never. */
  readonly sendTimeoutMs?: number
  /** Bytes on their way to all clients together before further messages wait. */
  readonly sendBudgetBytes?: number
  readonly metrics: MetricsRegistry
  readonly log: Scope
}

/** The verified identities of a caller; undefined where callers are not authenticated; rejects when they are and this one is nobody. */
export type AuthenticateCaller = (call: AnyCall) => Promise<readonly string[] | undefined>

export interface XdsServer {
  /** `authenticate`: for the callers of this server, where that differs from the others. */
  addTo(server: Server, authenticate?: AuthenticateCaller): void
  connections(): readonly Connection[]
  /** Sends every client again what it watches. */
  pushAll(): void
  /** Ends the stream of a client with UNAVAILABLE; if it does not take note within seconds, its connection. */
  disconnect(connection: Connection): void
  /** Ends every stream with UNAVAILABLE, so that clients go to another replica, and stops the pushes. */
  close(): void
}

/** So long clients that come and go wait for others, until those who have asked for them are told. */
const recallMs = 100

/** Each may be a question to an API server. */
const mostAuthenticating = 500

const healthInformation = 'type.googleapis.com/istio.v1.HealthInformation'

export function createXdsServer(options: XdsServerOptions): XdsServer {
  const { log } = options
  const types = options.types.map((type) => {
    const list = sharedListOf(type.source)
    return { ...type, list, everything: list.get }
  })
  const oneShots = new Map((options.oneShots ?? []).map((type) => [type.typeUrl, type]))
  const served = new Set([...types.map(({ source }) => source.typeUrl), ...oneShots.keys()])
  const metrics = createXdsMetrics(options.metrics, options.version, served)
  const budget = createSendBudget(options.sendBudgetBytes ?? 24 * 1024 * 1024)
  const rate = createStreamRate(options.streamsPerSecond ?? 0)
  const connections = new Map<Connection, CallOutlet>()
  const started = new Date().toISOString()
  const logRefusal = createRefusalLog(log)
  let authenticating = 0
  let isWarm = options.refusesFirst !== true
  let versions = 0
  let ids = 0
  let closed = false
  let recalling: NodeJS.Timeout | undefined

  const lane = createPushLane(
    options.quietTimes ?? { afterMs: 10, maxMs: 100 },
    (wave, waitedMs) => {
      metrics.debounced(waitedMs, wave.keys())
      fanOut.add({ wave, since: performance.now() - waitedMs })
    },
    () => fanOut.isBusy,
  )
  const fanOut = createFanOut(
    () => connections.keys(),
    (connection: Connection, { wave, since }: { readonly wave: Wave; readonly since: number }) =>
      connection.push(wave, since),
  )
  const subscriptions = types.map(({ source, list }) =>
    source.subscribe((changes) => {
      list.forget()
      if (connections.size > 0) lane.add(source.typeUrl, changes)
    }),
  )

  /** Those that give rights. */
  function own(identities: readonly string[]): readonly string[] {
    return identities.filter((identity) => options.isForeign?.(identity) !== true)
  }

  function isReady(): boolean {
    return !closed && (options.isReady?.() ?? true) && types.every(({ source }) => source.synced)
  }

  async function accept(
    call: AnyCall,
    outlet: CallOutlet,
    requests: Requests,
    authenticate: AuthenticateCaller,
  ): Promise<void> {
    if (!isWarm) {
      isWarm = true
      throw new StreamError(status.UNAVAILABLE, 'server warmup not complete; try again')
    }
    if (!isReady()) {
      throw new StreamError(status.UNAVAILABLE, 'server is not ready to serve discovery information')
    }
    // First who it is: callers who are nobody take no place of those who are somebody.
    const identities = await identitiesOf(call, authenticate)
    try {
      await rate.admit()
    } catch (cause) {
      throw new StreamError(status.RESOURCE_EXHAUSTED, `request rate limit exceeded: ${(cause as Error).message}`)
    }
    let connection: Connection | undefined
    let node: core.Node | undefined
    const attendance = attendStream(options.attend, outlet)
    requests.start((request) => {
      node ??= request.message.node
      if (request.message.typeUrl === healthInformation) {
        if (connection === undefined) logRefusal('health was told before the first request', { peer: call.getPeer() })
        else attendance.whenAttended(() => attendance.health(healthIn(request.message)))
        return
      }
      const known =
        connection ?? connect(call, outlet, identities, parseNode(node, oneShots.has(request.message.typeUrl)))
      if (connection === undefined) {
        attendance.begin({ id: known.id, node: known.node, identities: own(known.identities) })
      }
      connection = known
      attendance.whenAttended(() => known.receive(request))
    })
    call.on('close', end)
    call.on('cancelled', end)
    function end(): void {
      if (connection === undefined || !connections.delete(connection)) return
      metrics.clientRemoved()
      attendance.end()
      connection.close()
      clientsChanged()
      log.info('client disconnected', { client: connection.id })
    }
    if (call.cancelled || call.destroyed) end()
  }

  async function identitiesOf(call: AnyCall, authenticate: AuthenticateCaller): Promise<readonly string[] | undefined> {
    if (authenticating >= mostAuthenticating) {
      throw new StreamError(status.RESOURCE_EXHAUSTED, 'too many streams are being authenticated')
    }
    authenticating += 1
    try {
      return await authenticate(call)
    } catch (error) {
      logRefusal('a stream was refused', { peer: call.getPeer(), reason: messageOf(error) })
      throw new StreamError(status.UNAUTHENTICATED, 'authentication failure')
    } finally {
      authenticating -= 1
    }
  }

  function connect(
    call: AnyCall,
    outlet: CallOutlet,
    identities: readonly string[] | undefined,
    claimed: ProxyNode,
  ): Connection {
    const node = withoutAlias(claimed, options.clusterAliases ?? new Map())
    options.admitNode?.(node.type)
    if (options.checkNodeIdentity && identities !== undefined) authorizeNode(node, identities)
    ids += 1
    const connection = createConnection({
      id: `${node.proxyId}-${ids}`,
      node,
      identities: identities ?? [],
      ownIdentities: own(identities ?? []),
      peer: call.getPeer(),
      types,
      oneShots,
      otherType: options.otherType,
      outlet,
      budget,
      controlPlane: options.controlPlane,
      nextVersion,
      events: metrics.events,
      log,
    })
    connections.set(connection, outlet)
    metrics.clientAdded()
    clientsChanged()
    log.info('client connected', { client: connection.id, peer: connection.peer })
    return connection
  }

  function clientsChanged(): void {
    if (closed) return
    recalling ??= setTimeout(() => {
      recalling = undefined
      for (const connection of connections.keys()) connection.recall()
    }, recallMs).unref()
  }

  function nextVersion(): string {
    versions += 1
    return `${started}/${versions}`
  }

  function serve(kind: Request['kind'], call: AnyCall, authenticate: AuthenticateCaller): void {
    const outlet = outletOf(call, {
      transport: options.transportOf?.(call),
      sendTimeoutMs: options.sendTimeoutMs ?? 0,
      refuse: (error) => refuse(call, error, metrics, log),
      stuck() {
        metrics.stuck()
        logRefusal('a client is cut off: it takes nothing of what it is sent', { peer: call.getPeer() })
      },
    })
    const requests = requestsOf(kind, call, outlet)
    accept(call, outlet, requests, authenticate).catch((error: unknown) => outlet.fail(error))
  }

  return {
    addTo(server, authenticate = options.authenticate) {
      server.addService(discoveryServiceOf(metrics.received), {
        DeltaAggregatedResources: (call: AnyCall) => serve('delta', call, authenticate),
        StreamAggregatedResources: (call: AnyCall) => serve('sotw', call, authenticate),
      })
    },
    connections: () => [...connections.keys()].sort((a, b) => (a.id < b.id ? -1 : 1)),
    pushAll() {
      for (const connection of connections.keys()) connection.resend()
    },
    disconnect(connection) {
      connections.get(connection)?.expel(new StreamError(status.UNAVAILABLE, 'the stream was ended by an operator'))
    },
    close() {
      closed = true
      clearTimeout(recalling)
      for (const unsubscribe of subscriptions) unsubscribe()
      lane.close()
      fanOut.close()
      for (const { list } of types) list.forget()
      for (const outlet of connections.values()) {
        outlet.fail(new StreamError(status.UNAVAILABLE, 'transport is closing: the control plane stops'))
      }
    },
  }
}

function healthIn({ errorDetail }: Request['message']): HealthReport {
  return { isHealthy: errorDetail === undefined, message: errorDetail?.message ?? '' }
}

interface Requests {
  /** Requests that came before are delivered first. */
  start(deliver: (request: Request) => void): void
}

/** Requests stay unread until the stream is authenticated. */
function requestsOf(kind: Request['kind'], call: AnyCall, outlet: Outlet): Requests {
  return {
    start(deliver) {
      call.on('data', (bytes: Buffer) => {
        try {
          deliver(readRequest(kind, bytes))
        } catch (error) {
          outlet.fail(error)
        }
      })
      call.on('end', () => call.end())
    },
  }
}

function refuse(call: AnyCall, error: unknown, metrics: XdsMetrics, log: Scope): void {
  if (!(error instanceof StreamError)) {
    metrics.internalError()
    log.error('a stream ended by an internal error', { peer: call.getPeer(), reason: messageOf(error) })
  }
  const code = error instanceof StreamError ? error.code : status.INTERNAL
  const details = error instanceof StreamError ? error.message : 'internal error'
  call.emit('error', { code, details })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
