// Tunnel connections shared by the connections of one pod: one attempt per destination at a time, bounded tunnels per connection.
import { HboneError } from './errors.ts'
import type { PeerCertificate } from './peer.ts'
import type { ConnectRequest, Tunnel, TunnelConnection } from './types.ts'

export interface PoolOptions {
  readonly maxTunnelsPerConnection: number
  /** A connection that carried no new tunnel for this long is given up; tunnels in progress go on. */
  readonly unusedTimeoutMs: number
}

/** Where a tunnel leads. Equal keys share connections, so a key names everything that makes two connections different. */
export interface PoolTarget {
  readonly key: string
  /** Opens a new connection. Aborts when nobody waits for it any more. */
  open(signal: AbortSignal): Promise<TunnelConnection>
}

export interface TunnelPool {
  /** A tunnel to the target over a shared connection. Rejects with what `open` rejects with, or a HboneError. */
  connect(target: PoolTarget, request: ConnectRequest, signal?: AbortSignal): Promise<Tunnel>
  /** Tells all peers goodbye and refuses new tunnels; tunnels in progress go on. */
  drain(): void
  /** Cuts the connections whose peer is no longer acceptable. */
  cut(unacceptable: (peer: PeerCertificate) => boolean): void
  /** Cuts every connection; those who wait get `pool draining`. Resolves when all are closed. */
  close(): Promise<void>
  readonly connections: number
}

interface Waiter {
  resolve(connection: TunnelConnection): void
  reject(error: unknown): void
}

interface Destination {
  readonly key: string
  readonly connections: Set<TunnelConnection>
  /** Tunnels promised on a connection and not begun yet. */
  readonly waiters: Set<Waiter>
  attempt: AbortController | undefined
  /** New connections in a row that would not take a single tunnel. */
  fruitless: number
}

const maxRetries = 3
/** So many connections to a destination may be held up by tunnels that nobody reads from before others have to share with those. */
const mostHeldUp = 4

export function createTunnelPool(options: PoolOptions): TunnelPool {
  const destinations = new Map<string, Destination>()
  const idleTimers = new Map<TunnelConnection, NodeJS.Timeout>()
  const leaving = new Set<TunnelConnection>()
  let closed = false

  const hasRoom = (connection: TunnelConnection) =>
    connection.usable && connection.activeTunnels < Math.min(options.maxTunnelsPerConnection, connection.maxTunnels)

  function withRoom({ connections }: Destination): TunnelConnection | undefined {
    let heldUp: TunnelConnection | undefined
    for (const connection of connections) {
      if (!hasRoom(connection)) continue
      if (!connection.heldUp) return connection
      heldUp ??= connection
    }
    return connections.size < mostHeldUp ? undefined : heldUp
  }

  function destinationOf(key: string): Destination {
    const known = destinations.get(key)
    if (known !== undefined) return known
    const created: Destination = { key, connections: new Set(), waiters: new Set(), attempt: undefined, fruitless: 0 }
    destinations.set(key, created)
    return created
  }

  function forgetIfEmpty(destination: Destination): void {
    if (destination.connections.size === 0 && destination.waiters.size === 0 && destination.attempt === undefined) {
      destinations.delete(destination.key)
    }
  }

  function retire(destination: Destination, connection: TunnelConnection): void {
    clearTimeout(idleTimers.get(connection))
    idleTimers.delete(connection)
    if (!destination.connections.delete(connection)) return
    leaving.add(connection)
    void connection.closed.then(() => leaving.delete(connection))
    connection.closeGracefully()
    forgetIfEmpty(destination)
  }

  function restartIdleTimer(destination: Destination, connection: TunnelConnection): void {
    clearTimeout(idleTimers.get(connection))
    idleTimers.set(
      connection,
      setTimeout(() => retire(destination, connection), options.unusedTimeoutMs),
    )
  }

  /** Hands connections with room to those who wait. A waiter begins its tunnel in the same turn, so that room is counted right. */
  function serve(destination: Destination, target: PoolTarget): void {
    for (const waiter of destination.waiters) {
      const connection = withRoom(destination)
      if (connection === undefined) {
        attempt(destination, target)
        return
      }
      destination.waiters.delete(waiter)
      restartIdleTimer(destination, connection)
      waiter.resolve(connection)
    }
  }

  function refuseAll({ waiters }: Destination, error: unknown): void {
    const all = [...waiters]
    waiters.clear()
    for (const waiter of all) waiter.reject(error)
  }

  function attempt(destination: Destination, target: PoolTarget): void {
    if (destination.attempt !== undefined || destination.waiters.size === 0) return
    const controller = new AbortController()
    destination.attempt = controller
    void target.open(controller.signal).then(
      (connection) => {
        destination.attempt = undefined
        if (closed) {
          connection.cut()
          return
        }
        // Nobody waited any more when it came about, but it is good for those who came since.
        if (controller.signal.aborted && destination.waiters.size === 0) {
          connection.cut()
          forgetIfEmpty(destination)
          return
        }
        destination.connections.add(connection)
        restartIdleTimer(destination, connection)
        connection.onChange(() => {
          if (connection.usable) serve(destination, target)
          else retire(destination, connection)
        })
        if (hasRoom(connection)) destination.fruitless = 0
        else {
          destination.fruitless += 1
          retire(destination, connection)
          if (destination.fruitless > maxRetries) {
            destination.fruitless = 0
            refuseAll(destination, new HboneError('HTTP2', 'h2 failed: the peer takes no tunnels'))
          }
        }
        serve(destination, target)
        forgetIfEmpty(destination)
      },
      (error: unknown) => {
        if (destination.attempt === controller) destination.attempt = undefined
        if (!controller.signal.aborted) refuseAll(destination, error)
        // A caller may have come after the attempt was given up.
        if (destination.waiters.size > 0 && !closed) attempt(destination, target)
        forgetIfEmpty(destination)
      },
    )
  }

  /** `begin` runs in the turn in which the connection is handed over. */
  function withConnection<T>(
    target: PoolTarget,
    signal: AbortSignal | undefined,
    begin: (connection: TunnelConnection) => Promise<T>,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (closed) return reject(new HboneError('DRAINING', 'pool draining'))
      if (signal?.aborted === true) return reject(new HboneError('ABORTED', 'the caller gave up'))
      const destination = destinationOf(target.key)
      const ready = destination.waiters.size === 0 ? withRoom(destination) : undefined
      if (ready !== undefined) {
        restartIdleTimer(destination, ready)
        begin(ready).then(resolve, reject)
        return
      }
      const settle = () => signal?.removeEventListener('abort', abort)
      const waiter: Waiter = {
        resolve(connection) {
          settle()
          begin(connection).then(resolve, reject)
        },
        reject(error) {
          settle()
          reject(error)
        },
      }
      const abort = () => {
        destination.waiters.delete(waiter)
        waiter.reject(new HboneError('ABORTED', 'the caller gave up'))
        if (destination.waiters.size === 0) destination.attempt?.abort()
      }
      signal?.addEventListener('abort', abort)
      destination.waiters.add(waiter)
      serve(destination, target)
    })
  }

  return {
    get connections() {
      return [...destinations.values()].reduce((sum, { connections }) => sum + connections.size, 0)
    },
    async connect(target, request, signal) {
      for (let retries = 0; ; retries += 1) {
        try {
          return await withConnection(target, signal, (connection) => connection.connect(request, signal))
        } catch (error) {
          if (!(error instanceof HboneError) || error.code !== 'RETRY' || retries >= maxRetries) throw error
        }
      }
    },
    cut(unacceptable) {
      const all = [...destinations.values()].flatMap(({ connections }) => [...connections]).concat([...leaving])
      for (const connection of all) if (unacceptable(connection.peer)) connection.cut()
    },
    drain() {
      closed = true
      for (const destination of destinations.values()) {
        for (const connection of [...destination.connections]) retire(destination, connection)
      }
    },
    async close() {
      closed = true
      for (const destination of [...destinations.values()]) {
        refuseAll(destination, new HboneError('DRAINING', 'pool draining'))
        destination.attempt?.abort()
        for (const connection of [...destination.connections]) retire(destination, connection)
      }
      destinations.clear()
      for (const connection of leaving) connection.cut()
      await Promise.all([...leaving].map((connection) => connection.closed))
    },
  }
}
