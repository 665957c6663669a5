// Connections that applications open: decided, then carried in plain text or in a tunnel.
import type { Socket } from 'node:net'
import { quoted } from '../../observability/index.ts'
import { connectHeaders, type OutboundDecision, routeOutbound, type Target } from '../decisions/index.ts'
import type { SocketAddress, Workload } from '../model.ts'
import { formatAddress } from '../state/address.ts'
import type { ConnectionFacts } from '../telemetry/index.ts'
import { addressesOf, type Client, type ClientAddresses, serveClient } from './client.ts'
import { decide } from './decide.ts'
import { forward, tcpEnd, type Upstream } from './forward.ts'
import { connectOptions, illegalPorts, type PodContext } from './pod-context.ts'
import { connectTcp } from './sockets.ts'
import { openInnerTunnel, openTunnel } from './tunnels.ts'
import type { LiveConnection } from './types.ts'

type RoutedDecision = Exclude<OutboundDecision, { kind: 'refuse' }>

/** Serves a captured connection. Never rejects; the socket is closed in the end. */
export async function serveOutbound(context: PodContext, socket: Socket): Promise<void> {
  const addresses = addressesOf(socket)
  if (addresses !== undefined) await carryOutbound(context, socket, addresses)
}

/** Carries a client's connection to where it wants to go. The socket is paused; nothing of it has been read. */
export async function carryOutbound(context: PodContext, socket: Socket, addresses: ClientAddresses): Promise<void> {
  await serveClient(context, socket, { ...addresses, reporter: 'source' }, (client) => carry(context, client))
}

async function carry(context: PodContext, client: Client): Promise<void> {
  const { services, options, pod } = context
  const { from, to, gone } = client
  const wait = { timeoutMs: options.localWorkloadTimeoutMs, signal: gone }
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
    { unanswered: 'fail', signal: gone },
  )
  if (decision.kind === 'refuse') return client.deny({ error: decision.error, flag: 'CONNECT' })
  const address = await resolveTarget(context, decision.target, source, gone)
  await forward(
    {
      facts: factsOf(decision, { source, from, address }),
      live: liveOf(decision, { from, to, address }),
      clientGone: gone,
      connectUpstream: (signal) => connectUpstream(context, { decision, source, from, address }, signal),
      acceptClient: client.accept,
      refuseClient: client.close,
    },
    { tracker: context.tracker, reports: services.reports },
  )
}

async function resolveTarget(
  { services }: PodContext,
  target: Target,
  source: Workload,
  gone: AbortSignal,
): Promise<SocketAddress> {
  if (target.kind === 'address') return target.address
  const { workload, family, port } = target
  const givenUp = Promise.withResolvers<never>()
  const giveUp = () => givenUp.reject(gone.reason)
  gone.addEventListener('abort', giveUp)
  try {
    return { ip: await Promise.race([services.resolveHostname(workload, family, source), givenUp.promise]), port }
  } finally {
    gone.removeEventListener('abort', giveUp)
  }
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
  if (decision.kind === 'hbone') return { end: tunnel, peerChain: tunnel.peer.chain }
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
    const peerChain = [...tunnel.peer.chain, ...inner.peerChain]
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
