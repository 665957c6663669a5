// Connections that applications open: decided, then carried in plain text or in a tunnel.
import type { Socket } from 'node:net'
import { quoted } from '../../observability/index.ts'
import { connectHeaders, type OutboundDecision, routeOutbound, type Target } from '../decisions/index.ts'
import type { SocketAddress, Workload } from '../model.ts'
import { formatAddress } from '../state/address.ts'
import type { ConnectionFacts } from '../telemetry/index.ts'
import { decide } from './decide.ts'
import { describeFailure } from './errors.ts'
import { forward, tcpEnd, type Upstream } from './forward.ts'
import { connectOptions, illegalPorts, type PodContext } from './pod-context.ts'
import { connectTcp, destinationOf, remoteAddressOf, watchPaused } from './sockets.ts'
import { onStop } from './stop-listeners.ts'
import { openInnerTunnel, openTunnel } from './tunnels.ts'
import type { LiveConnection } from './types.ts'

type RoutedDecision = Exclude<OutboundDecision, { kind: 'refuse' }>

/** Serves a captured connection. Never rejects; the socket is closed in the end. */
export async function serveOutbound(context: PodContext, socket: Socket): Promise<void> {
  socket.on('error', () => undefined)
  const from = remoteAddressOf(socket)
  const to = destinationOf(socket)
  if (from === undefined || to === undefined) {
    socket.destroy()
    return
  }
  await carryOutbound(context, socket, from, to)
}

/** Carries a client's connection to where it wants to go. The socket is paused; nothing of it has been read. */
export async function carryOutbound(
  context: PodContext,
  socket: Socket,
  from: SocketAddress,
  to: SocketAddress,
): Promise<void> {
  const { services, options, pod, stopping } = context
  services.metrics.socketsOpen.with({ reporter: 'source' }).inc()
  const gone = new AbortController()
  const endWatch = watchPaused(socket, () => gone.abort(new Error('client gone')))
  const endStop = onStop(stopping, () => gone.abort(stopping.reason))
  try {
    const wait = { timeoutMs: options.localWorkloadTimeoutMs, signal: gone.signal }
    const source = await services.state.waitForLocalWorkload(pod, wait)
    const decision = await decide(
      context,
      (view) =>
        routeOutbound(
          view,
          { source, from, to },
          {
            network: options.network,
            hbonePort: options.ports.hbone,
            illegalPorts: illegalPorts(options),
            random: services.random,
          },
        ),
      { unanswered: 'fail', signal: gone.signal },
    )
    if (decision.kind === 'refuse') {
      services.reports.deny({ reporter: 'source', src: from, dst: to }, { error: decision.error, flag: 'CONNECT' })
      socket.destroy()
      return
    }
    const address = await resolveTarget(context, decision.target, source)
    await forward(
      {
        facts: factsOf(decision, { source, from, address }),
        live: liveOf(decision, { from, to, address }),
        clientGone: gone.signal,
        connectUpstream: (signal) => connectUpstream(context, { decision, source, from, address }, signal),
        acceptClient() {
          endWatch()
          return tcpEnd(socket)
        },
        refuseClient: () => socket.destroy(),
      },
      { tracker: context.tracker, reports: services.reports },
    )
  } catch (error) {
    services.reports.deny({ reporter: 'source', src: from, dst: to }, describeFailure(error))
    socket.destroy()
  } finally {
    endWatch()
    endStop()
    services.metrics.socketsOpen.with({ reporter: 'source' }).dec()
  }
}

async function resolveTarget({ services }: PodContext, target: Target, source: Workload): Promise<SocketAddress> {
  if (target.kind === 'address') return target.address
  return { ip: await services.resolveHostname(target.workload, target.family, source), port: target.port }
}

interface Route {
  readonly decision: RoutedDecision
  readonly source: Workload
  readonly from: SocketAddress
  readonly address: SocketAddress
}

async function connectUpstream(context: PodContext, route: Route, signal: AbortSignal): Promise<Upstream> {
  const { decision, source, from, address } = route
  const { log, newTrace } = context.services
  const trace = newTrace()
  if (log.writes('debug')) {
    log.debug('routed', {
      id: trace.traceId,
      'src.addr': formatAddress(from),
      'dst.addr': formatAddress(address),
      reason: quoted(decision.reason),
    })
  }
  if (decision.kind === 'tcp') return { end: tcpEnd(await connectTcp(address, connectOptions(context), signal)) }
  const about = { source, from, trace, ...(decision.service === undefined ? {} : { service: decision.service }) }
  const tunnel = await openTunnel(
    context,
    {
      source,
      sourceIp: from.ip,
      to: address,
      authority: authorityOf(decision, address),
      headers: connectHeaders(about),
      expectedIdentities: decision.expectedIdentities,
    },
    signal,
  )
  const peerChain = tunnel.peer.chain
  if (decision.kind === 'hbone') return { end: tunnel, peerChain }
  try {
    const inner = await openInnerTunnel(
      context,
      tunnel,
      {
        source,
        authority: decision.authority,
        headers: connectHeaders({ ...about, forwardedNetwork: context.options.network }),
        expectedIdentities: decision.finalIdentities,
      },
      signal,
    )
    if (inner.baggage === undefined) return { end: inner.tunnel, peerChain }
    const remoteDestination = {
      baggage: inner.baggage,
      ...(inner.peerIdentity === undefined ? {} : { identity: inner.peerIdentity }),
    }
    return { end: inner.tunnel, peerChain, remoteDestination }
  } catch (error) {
    tunnel.stream.on('error', () => undefined)
    tunnel.reset()
    throw error
  }
}

function authorityOf(decision: Exclude<RoutedDecision, { kind: 'tcp' }>, address: SocketAddress): string {
  return decision.kind === 'hbone' && decision.authorityPort !== undefined
    ? formatAddress({ ip: address.ip, port: decision.authorityPort })
    : decision.authority
}

function factsOf(
  decision: RoutedDecision,
  { source, from, address }: { source: Workload; from: SocketAddress; address: SocketAddress },
): ConnectionFacts {
  const { destinationWorkload, service } = decision
  return {
    reporter: 'source',
    src: from,
    dst: address,
    source,
    mutualTls: decision.kind !== 'tcp',
    ...(destinationWorkload === undefined ? {} : { destination: destinationWorkload }),
    ...(decision.kind === 'tcp' ? {} : { hboneAuthority: authorityOf(decision, address) }),
    ...(service === undefined ? {} : { service }),
  }
}

const protocols = { tcp: 'TCP', hbone: 'HBONE', 'double-hbone': 'DOUBLEHBONE' } as const

function liveOf(
  decision: RoutedDecision,
  { from, to, address }: { from: SocketAddress; to: SocketAddress; address: SocketAddress },
): LiveConnection {
  return {
    direction: 'outbound',
    from,
    originalDestination: formatAddress(to),
    actualDestination: address,
    protocol: protocols[decision.kind],
  }
}
