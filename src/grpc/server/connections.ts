// The connections of gRPC ports, from the TCP handshake to their end: how long each may prove nothing or do nothing, what of our bytes it takes.
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { ServerInterceptor } from '@grpc/grpc-js'
import { type CallTransport, createCallTransports } from './call-transport.ts'
import { createUnproven } from './unproven.ts'

/**
 * Why we ended a connection. `unproven`: no caller of it proved who it is in time; `crowded`: there were too many of these; `idle`: it had no
 * call for long, and stayed open when told to leave; `stuck`: its client takes nothing of what it is sent; `forced`: somebody asked for it.
 */
export type ConnectionEnd = 'unproven' | 'crowded' | 'idle' | 'stuck' | 'forced'

export interface ConnectionLimits {
  /** How long until a caller of a connection must have proved who it is; 0: it need not. */
  readonly provingMs: number
  /** How long a connection without a call stays open; 0: for ever. */
  readonly idleMs: number
  /** How many connections may have proved nothing yet. Of more, the oldest of the address with most of them is ended. */
  readonly mostUnproven: number
}

export interface GrpcConnection {
  /** `ip:port`. */
  readonly peer: string
  /** Undefined before the TLS handshake, and on ports without TLS. */
  readonly tls: TLSSocket | undefined
  /** How many bytes the kernel has taken for this client, TLS and HTTP/2 included: it grows for as long as the client reads. */
  readonly bytesTaken: number
  /** A caller has proved who it is. */
  admit(): void
  /** Closes the socket at once: neither peer nor kernel is waited for, and what was to be sent is forgotten. */
  destroy(end: ConnectionEnd): void
}

/** How the two ends of a connection are called. No two that are open have the same. */
export interface Ends {
  readonly localAddress?: string | undefined
  readonly localPort?: number | undefined
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
}

export interface GrpcConnections {
  /** For the server whose connections these are. */
  readonly interceptor: ServerInterceptor
  readonly limits: ConnectionLimits
  readonly size: number
  /** Connections of which no caller has proved who it is. */
  readonly unproven: number
  /** Ends the connections that have proved nothing: who is told to leave must not wait for them. */
  endUnproven(): void
  /** Takes up a connection as it is accepted. */
  add(socket: Socket): void
  /** The TLS handshake of a connection is done. */
  secured(tls: TLSSocket): void
  /** What a call is made over; undefined for one that is over already. */
  of(call: { readonly metadata: object }): CallTransport | undefined
}

const longestTimerMs = 2 ** 31 - 1

/** How long a peer may take to leave once it was told to. */
const leavingMs = 10_000

export function createConnections(
  limits: ConnectionLimits,
  ended: (end: ConnectionEnd, peer: string) => void = () => {},
): GrpcConnections {
  const open = new Map<string, HeldConnection>()
  const unproven = createUnproven<HeldConnection>(limits.mostUnproven)
  const calls = createCallTransports((ends) => open.get(nameOf(ends)))

  return {
    limits,
    interceptor: calls.interceptor,
    get size() {
      return open.size
    },
    get unproven() {
      return unproven.size
    },
    endUnproven() {
      for (const connection of unproven.all()) connection.destroy('unproven')
    },
    add(socket) {
      const { remoteAddress, remotePort } = socket
      if (remoteAddress === undefined || remotePort === undefined) {
        socket.destroy()
        return
      }
      const name = nameOf(socket)
      const connection = new HeldConnection(socket, limits, ended, () => unproven.delete(remoteAddress, connection))
      open.set(name, connection)
      socket.once('close', () => {
        if (open.get(name) === connection) open.delete(name)
        connection.closed()
      })
      unproven.add(remoteAddress, connection)?.destroy('crowded')
    },
    secured(tls) {
      const connection = open.get(nameOf(tls))
      if (connection === undefined) tls.destroy()
      else connection.tls = tls
    },
    of: calls.of,
  }
}

function nameOf({ localAddress, localPort, remoteAddress, remotePort }: Ends): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}

class HeldConnection implements GrpcConnection {
  readonly peer: string
  tls: TLSSocket | undefined
  readonly #socket: Socket
  readonly #limits: ConnectionLimits
  readonly #ended: (end: ConnectionEnd, peer: string) => void
  readonly #proved: () => void
  #isProved = false
  #calls = 0
  #timer: NodeJS.Timeout | undefined

  constructor(
    socket: Socket,
    limits: ConnectionLimits,
    ended: (end: ConnectionEnd, peer: string) => void,
    proved: () => void,
  ) {
    this.peer = `${socket.remoteAddress}:${socket.remotePort}`
    this.#socket = socket
    this.#limits = limits
    this.#ended = ended
    this.#proved = proved
    this.#endAfter(limits.provingMs, 'unproven')
  }

  get bytesTaken(): number {
    return this.#socket.bytesWritten - bytesQueued(this.#socket)
  }

  admit(): void {
    if (this.#isProved) return
    this.#isProved = true
    this.#proved()
    this.#watchIdleness()
  }

  callBegan(): void {
    this.#calls += 1
    if (this.#isProved) this.#watchIdleness()
  }

  callEnded(): void {
    this.#calls -= 1
    if (this.#isProved) this.#watchIdleness()
  }

  destroy(end: ConnectionEnd): void {
    if (this.#socket.destroyed) return
    this.#ended(end, this.peer)
    this.tls?.destroy()
    this.#socket.destroy()
  }

  closed(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#proved()
  }

  /** The server says goodbye to a connection that has been idle for so long: that it has left by then is seen to here. */
  #watchIdleness(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const { idleMs } = this.#limits
    if (this.#calls === 0 && idleMs > 0) this.#endAfter(idleMs + leavingMs, 'idle')
  }

  #endAfter(ms: number, end: ConnectionEnd): void {
    if (ms === 0 || this.#socket.destroyed) return
    this.#timer = setTimeout(() => this.destroy(end), Math.min(ms, longestTimerMs))
    this.#timer.unref()
  }
}

/** What was written and has not been taken by the kernel yet: Node.js keeps it where its own timeouts look. */
function bytesQueued(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle')
  if (typeof handle !== 'object' || handle === null) return 0
  const queued: unknown = Reflect.get(handle, 'writeQueueSize')
  return typeof queued === 'number' ? queued : 0
}
