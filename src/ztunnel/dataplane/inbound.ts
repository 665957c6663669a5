// Tunnels that arrive for the pod: the peer is verified, each CONNECT decided, authorized and carried to the application.
import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { expectTrustDomain, serveTunnels, type TunnelRequest, type TunnelServerConnection } from '../../hbone/index.ts'
import {
  decideInbound,
  encodeProxyHeader,
  type InboundDecision,
  parseForwardedHost,
  parseSpiffeId,
  readConnect,
  responseHeaders,
} from '../decisions/index.ts'
import type { Identity, SocketAddress, Workload } from '../model.ts'
import { formatAddress } from '../state/address.ts'
import { errorTexts, type ResponseFlag } from '../telemetry/index.ts'
import { authorizeConnection } from './authorization.ts'
import { addressesOf } from './client.ts'
import { connectApplication } from './connect-application.ts'
import { decide } from './decide.ts'
import { describeFailure } from './errors.ts'
import { forward } from './forward.ts'
import { illegalPorts, type PodContext, servedIdentity, tunnelOptions } from './pod-context.ts'
import { watchPaused } from './sockets.ts'
import { onStop } from './stop-listeners.ts'

type ConnectDecision = Extract<InboundDecision, { kind: 'connect' }>

export interface InboundOptions {
  /** The listener can make connections with the client's source address. */
  readonly preserveSource: boolean
  /** Told of each connection that passed its handshake. */
  readonly onConnection: (connection: TunnelServerConnection) => void
}

/** Serves a tunnel connection. Never rejects; resolves when the handshake is over and its tunnels go on by themselves. */
export async function serveInbound(context: PodContext, socket: Socket, options: InboundOptions): Promise<void> {
  const { services, stopping } = context
  const addresses = addressesOf(socket)
  if (addresses === undefined) return
  const { from, to } = addresses
  services.metrics.socketsOpen.with({ reporter: 'destination' }).inc()
  socket.once('close', () => services.metrics.socketsOpen.with({ reporter: 'destination' }).dec())
  const gone = new AbortController()
  const endWatch = watchPaused(socket, () => gone.abort(new Error('client gone')))
  const keepFromStop = onStop(stopping, () => socket.destroy())
  socket.once('close', keepFromStop)
  try {
    const wait = { timeoutMs: context.options.localWorkloadTimeoutMs, signal: gone.signal }
    const local = await services.state.waitForLocalWorkload(context.pod, wait)
    const identity = servedIdentity(context, local)
    const check = expectTrustDomain(identity.trustDomain)
    const made = await tunnelOptions(context, identity, 'destination', check)
    endWatch()
    const connection = await serveTunnels(socket, made, (request, { peer }) => {
      const peerIdentity = peer.spiffeIds.map(parseSpiffeId).find((identity) => identity !== undefined)
      void serveRequest(context, request, {
        from,
        to,
        peerIdentity,
        peerChain: peer.chain,
        preserveSource: options.preserveSource,
      })
    })
    // From now on its peer is told before it ends.
    keepFromStop()
    options.onConnection(connection)
    void connection.closed.then(() => {
      const { breach: error } = connection
      if (error !== undefined)
        services.log.warn('tunnel connection broken by its peer', { 'src.addr': formatAddress(from), error })
    })
  } catch (error) {
    socket.destroy()
    const failure = describeFailure(error)
    const inHandshake = failure.flag === 'TLS_FAILURE' || failure.flag === 'CERT_REVOKED'
    const text = inHandshake ? errorTexts.tlsHandshake(messageOf(error)) : failure.error
    services.reports.deny({ reporter: 'destination', src: from, dst: to }, { flag: failure.flag, error: text })
  } finally {
    endWatch()
  }
}

export interface Peer {
  readonly from: SocketAddress
  readonly to: SocketAddress
  readonly peerIdentity: Identity | undefined
  readonly peerChain: readonly X509Certificate[]
  readonly preserveSource: boolean
}

/** Answers one request of a tunnel connection; what is wrong in itself is refused before anything is waited for. */
export async function serveRequest(context: PodContext, request: TunnelRequest, peer: Peer): Promise<void> {
  const { services, options } = context
  const { from, to, peerIdentity } = peer
  const refuse = (status: number, failure: { readonly error: string; readonly flag: ResponseFlag }): void => {
    services.reports.deny({ reporter: 'destination', src: from, dst: to }, failure)
    request.reject(status)
  }
  const asked = readConnect(request)
  if (asked.kind === 'reject') return refuse(asked.status, { error: asked.error, flag: 'CONNECT' })
  let found: Workload
  try {
    const wait = { timeoutMs: options.localWorkloadTimeoutMs, signal: request.signal }
    found = await services.state.waitForLocalWorkload(context.pod, wait)
  } catch (error) {
    return refuse(503, describeFailure(error))
  }
  // What the decision asks the control plane for takes its time, in which the pod's own workload may change.
  const localNow = (): Workload => services.state.localWorkload(context.pod) ?? found
  const decision = await decide(
    context,
    (view) =>
      decideInbound(
        view,
        {
          method: request.method,
          authority: request.authority,
          local: localNow(),
          from,
          connectionTo: to,
          headers: request.headers,
          ...(peerIdentity === undefined ? {} : { peerIdentity }),
        },
        {
          network: options.network,
          illegalPorts: illegalPorts(options),
          localhostAppTunnel: options.localhostAppTunnel,
          readBaggage: options.baggage,
        },
      ),
    // An authority that stays unknown is refused; a client that stays unknown is only missing in logs.
    { unanswered: 'decide', signal: request.signal },
  )
  if (decision.kind === 'reject') {
    return refuse(decision.status, { error: decision.error, flag: 'CONNECT' })
  }
  await carry(context, request, { ...peer, local: localNow(), decision })
}

async function carry(
  context: PodContext,
  request: TunnelRequest,
  {
    from,
    to,
    peerIdentity,
    peerChain,
    preserveSource,
    local,
    decision,
  }: Peer & { local: Workload; decision: ConnectDecision },
): Promise<void> {
  const { services, options } = context
  const about = {
    source: from,
    destination: decision.upstream,
    ...(peerIdentity === undefined ? {} : { identity: peerIdentity }),
  }
  const { sourceWorkload, baggage, service } = decision
  await forward(
    {
      facts: {
        reporter: 'destination',
        src: from,
        dst: to,
        hboneAuthority: request.authority,
        mutualTls: true,
        destination: local,
        ...(sourceWorkload === undefined ? {} : { source: sourceWorkload }),
        ...(baggage === undefined ? {} : { sourceBaggage: baggage }),
        ...(peerIdentity === undefined ? {} : { peerIdentity }),
        ...(service === undefined ? {} : { service }),
      },
      live: {
        direction: 'inbound',
        from,
        originalDestination: parseForwardedHost(request.headers.forwarded),
        actualDestination: decision.upstream,
        protocol: 'HBONE',
      },
      peerChain,
      authorization: about,
      authorize: () =>
        authorizeConnection(context, { ...about, destinationWorkload: local }, request.headers.traceparent),
      clientGone: request.signal,
      async connectUpstream(signal) {
        const { connectTo: to, proxyProtocol } = decision
        const header = proxyProtocol && encodeProxyHeader({ source: from, ...proxyProtocol })
        const keepSource = preserveSource && decision.preserveSource
        return { end: await connectApplication(context, { to, from, keepSource, header }, signal) }
      },
      acceptClient: () => request.accept(responseHeaders(local, 200, options.baggage)),
      refuseClient: ({ flag }) => request.reject(flag === 'DENY' ? 401 : 503),
    },
    { tracker: context.tracker, reports: services.reports },
  )
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
