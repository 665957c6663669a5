// The proxy of one pod: its listeners and everything that goes through them.
import type { Socket } from 'node:net'
import { createTunnelPool, type PeerCertificate, type TunnelServerConnection } from '../../hbone/index.ts'
import type { NetworkNamespace } from '../../linux/index.ts'
import type { PodInfo } from '../model.ts'
import { formatAddress } from '../state/address.ts'
import { listenDns } from './dns-listeners.ts'
import { ConnectionError } from './errors.ts'
import { serveInbound } from './inbound.ts'
import { serveOutbound } from './outbound.ts'
import { servePlaintext } from './plaintext.ts'
import type { PodContext } from './pod-context.ts'
import { listenTcp, type TcpListener } from './sockets.ts'
import { createConnectionTracker } from './tracker.ts'
import type { DataPlaneOptions, DataPlaneServices, LiveConnection } from './types.ts'

export interface PodProxyOptions {
  readonly pod: PodInfo
  /** The pod's namespace; absent: this process's own. The caller closes it after the proxy has ended. */
  readonly namespace?: NetworkNamespace
  readonly options: DataPlaneOptions
  readonly services: DataPlaneServices
  /** `hbone`: only the listener for tunnels, as for the proxy's own workload. */
  readonly listeners: 'all' | 'hbone'
  /**
   * Asked of each tunnel connection that is accepted, before anything is read of it: whether it is served here, or a promise that is
   * settled once somebody else serves it.
   */
  readonly placeTunnel?: (socket: Socket) => 'here' | Promise<void>
}

export interface PodProxy {
  /** Serves a tunnel connection that somebody else has accepted for the pod, paused and unread. */
  takeTunnel(socket: Socket): void
  connections(): readonly LiveConnection[]
  /** No new connections; tunnel peers are told; resolves when the connections in progress have ended. */
  drain(): Promise<void>
  /** Cuts everything at once. Resolves when the peers of tunnels have been told, or have taken too long to hear it. */
  stop(reason: string): Promise<void>
}

/** Binds the pod's listeners. Rejects, with nothing left behind, when one of them cannot be bound. */
export async function startPodProxy(given: PodProxyOptions): Promise<PodProxy> {
  const { pod, namespace, options, services } = given
  const stopping = new AbortController()
  const tracker = createConnectionTracker({
    state: services.state,
    pod,
    onPolicyEnd: (connection, { reason }) =>
      services.log.info('connection closed due to policy change', {
        'src.addr': formatAddress(connection.from),
        'dst.addr': formatAddress(connection.actualDestination),
        reason,
      }),
  })
  const pool = createTunnelPool(options.pool)
  const context: PodContext = { pod, namespace, options, services, tracker, pool, stopping: stopping.signal }
  const listeners: { close(): void }[] = []
  const servers = new Set<TunnelServerConnection>()
  const handshaking = new Set<Promise<void>>()
  let draining = false
  let tunnelListener = { transparent: false }

  const onConnection = (connection: TunnelServerConnection) => {
    servers.add(connection)
    void connection.closed.then(() => servers.delete(connection))
    if (draining) connection.goAway()
  }
  const own = (work: Promise<void>) => {
    handshaking.add(work)
    void work.finally(() => handshaking.delete(work))
  }
  const serveTunnel = (socket: Socket, { transparent }: { transparent: boolean }) =>
    own(serveInbound(context, socket, { preserveSource: transparent, onConnection }))
  const listen = async (
    port: number,
    onSocket: (socket: Socket, listener: { transparent: boolean }) => void,
    ip = options.ipv6 ? '::' : '0.0.0.0',
  ) => {
    const state = { transparent: false }
    const listener: TcpListener = await listenTcp(
      {
        namespace,
        address: { ip, port },
        mark: options.mark,
        transparent: given.listeners === 'all' ? options.transparent : 'never',
        reusePort: options.reusePort,
        keepalive: options.keepalive,
        onError: (error) => services.log.error('cannot accept connections', { error: error.message }),
      },
      (socket) => onSocket(socket, state),
    )
    state.transparent = listener.transparent
    listeners.push(listener)
    return state
  }
  const closeListeners = () => {
    for (const listener of listeners.splice(0)) listener.close()
  }

  const { revocations } = services
  const endRevocations = revocations?.subscribe(() => {
    const isRevoked = ({ chain }: Pick<PeerCertificate, 'chain'>) => revocations.check(chain) !== undefined
    tracker.cutRevoked((chain) => isRevoked({ chain }))
    pool.cut(isRevoked)
    for (const server of servers) if (isRevoked(server.peer)) server.cut()
  })

  const stop = async (reason: string): Promise<void> => {
    const error = new ConnectionError('CONNECT', reason)
    draining = true
    closeListeners()
    stopping.abort(error)
    tracker.cutAll(error)
    const told = [pool.close(), ...[...servers].map(({ closed }) => closed)]
    for (const server of servers) server.cut()
    tracker.close()
    endRevocations?.()
    await Promise.all(told)
  }

  try {
    const { ports } = options
    if (given.listeners === 'hbone' || options.proxy) {
      tunnelListener = await listen(ports.hbone, (socket, listener) => {
        const place = given.placeTunnel?.(socket) ?? 'here'
        if (place === 'here') serveTunnel(socket, listener)
        else own(place)
      })
    }
    if (given.listeners === 'all' && options.proxy) {
      await listen(ports.plaintext, (socket, { transparent }) =>
        own(servePlaintext(context, socket, { preserveSource: transparent })),
      )
      await listen(ports.outbound, (socket) => own(serveOutbound(context, socket)))
      if (ports.socks5 !== undefined) {
        // Few use it, and it brings a DNS library.
        const { serveSocks5 } = await import('./socks5.ts')
        await listen(ports.socks5, (socket) => own(serveSocks5(context, socket)), '127.0.0.1')
      }
    }
    if (given.listeners === 'all' && services.dns !== undefined) {
      listeners.push(await listenDns(context, services.dns))
    }
  } catch (error) {
    // The first of the listeners may have accepted something already.
    await stop('the proxy of the pod cannot start')
    throw error
  }

  return {
    connections: () => tracker.list(),
    takeTunnel: (socket) => serveTunnel(socket, tunnelListener),
    async drain() {
      draining = true
      closeListeners()
      for (const server of servers) server.goAway()
      while (handshaking.size > 0) await Promise.all(handshaking)
      await tracker.empty()
      pool.drain()
      await Promise.all([...servers].map(({ closed }) => closed))
    },
    stop,
  }
}
