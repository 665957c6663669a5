// Opens the tunnels that outbound decisions ask for: pooled connections, and a tunnel inside a tunnel for other networks.
import type { X509Certificate } from 'node:crypto'
import { expectOneOf, HboneError, openTunnelConnection, type Tunnel, type TunnelConnection } from '../../hbone/index.ts'
import { type Baggage, identityOf, parseBaggage, parseSpiffeId, spiffeId } from '../decisions/index.ts'
import type { Identity, SocketAddress, Workload } from '../model.ts'
import { formatAddress } from '../state/address.ts'
import { errorTexts } from '../telemetry/index.ts'
import { ConnectionError } from './errors.ts'
import { connectOptions, type PodContext, tunnelOptions } from './pod-context.ts'
import { connectTcp, isTimeout } from './sockets.ts'

export interface TunnelTarget {
  readonly source: Workload
  readonly sourceIp: string
  readonly to: SocketAddress
  readonly authority: string
  readonly headers: Readonly<Record<string, string>>
  /** SPIFFE ids, one of which the peer must prove. */
  readonly expectedIdentities: readonly string[]
}

/** A tunnel over a shared connection of the pod. */
export function openTunnel(context: PodContext, target: TunnelTarget, signal: AbortSignal): Promise<Tunnel> {
  const { source, sourceIp, to, expectedIdentities } = target
  const key = JSON.stringify([spiffeId(identityOf(source)), expectedIdentities, sourceIp, to.ip, to.port])
  return context.pool.connect(
    { key, open: (attempt) => openConnection(context, target, attempt) },
    { authority: target.authority, headers: target.headers },
    signal,
  )
}

const optionsOf = (context: PodContext, target: Pick<TunnelTarget, 'source' | 'expectedIdentities'>) =>
  tunnelOptions(context, identityOf(target.source), 'source', expectOneOf(target.expectedIdentities))

async function openConnection(
  context: PodContext,
  target: TunnelTarget,
  signal: AbortSignal,
): Promise<TunnelConnection> {
  const options = await optionsOf(context, target)
  const socket = await connectTcp(target.to, connectOptions(context), signal).catch((error: unknown) => {
    if (!isTimeout(error)) throw error
    throw new ConnectionError('NETWORK_POLICY', errorTexts.hboneConnectTimeout('deadline has elapsed'))
  })
  const connection = await openTunnelConnection(
    socket,
    {
      ...options,
      onPingTimeout: () => context.services.log.warn('HBONE ping timeout/error', { peer: formatAddress(target.to) }),
    },
    signal,
  )
  refuseRevoked(context, connection)
  return connection
}

/** What is revoked between the handshake and the moment from which a connection is looked at when lists change. */
function refuseRevoked({ services }: PodContext, connection: TunnelConnection): void {
  const revoked = services.revocations?.check(connection.peer.chain)
  if (revoked === undefined) return
  connection.cut()
  throw new HboneError('PEER_IDENTITY', revoked)
}

export interface InnerTunnel {
  readonly tunnel: Tunnel
  readonly peerChain: readonly X509Certificate[]
  readonly peerIdentity?: Identity
  readonly baggage?: Baggage
}

/** A tunnel of its own inside an open one, with another peer at its end. It ends with the tunnel that carries it. */
export async function openInnerTunnel(
  context: PodContext,
  carrier: Tunnel,
  target: Pick<TunnelTarget, 'source' | 'authority' | 'headers' | 'expectedIdentities'>,
  signal: AbortSignal,
): Promise<InnerTunnel> {
  const options = await optionsOf(context, target)
  const connection = await openTunnelConnection(carrier.stream, options, signal)
  try {
    const tunnel = await connection.connect({ authority: target.authority, headers: target.headers }, signal)
    refuseRevoked(context, connection)
    tunnel.stream.once('close', () => connection.closeGracefully())
    const peerIdentity = connection.peer.spiffeIds.map(parseSpiffeId).find((identity) => identity !== undefined)
    const { baggage } = tunnel.headers
    return {
      tunnel,
      peerChain: connection.peer.chain,
      ...(peerIdentity === undefined ? {} : { peerIdentity }),
      ...(baggage === undefined ? {} : { baggage: parseBaggage([baggage]) }),
    }
  } catch (error) {
    connection.cut()
    throw error
  }
}
