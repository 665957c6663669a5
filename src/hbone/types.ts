// What the tunnel client and server are made of: credentials, peers, settings, streams. The framing behind these types can be replaced.
import type { Duplex } from 'node:stream'
import type { PeerCertificate } from './peer.ts'

/** Our side's certificate and whom it trusts, PEM. Values are immutable: a rotated certificate is a new value. */
export interface TlsCredentials {
  readonly privateKey: string
  /** Leaf first, then intermediates. */
  readonly certificateChain: string
  /** One or more root certificates. */
  readonly roots: string
}

/** Judges a peer whose chain has been verified. Returns why it is refused, or undefined to accept it. */
export type PeerCheck = (peer: PeerCertificate) => string | undefined

export interface TlsOptions {
  readonly credentials: TlsCredentials
  readonly checkPeer: PeerCheck
  /** The peer is checked with its chain up to a root, and refused when the certificates it sent cannot be followed there. Without, a server sees no more than the leaf. */
  readonly wholeChain?: boolean
  /** Also TLS 1.2 with ECDHE and AES-GCM. */
  readonly allowTls12?: boolean
  /** Key exchange groups, OpenSSL names; Node's default when absent. */
  readonly groups?: string
  /** 10 s when absent. */
  readonly handshakeTimeoutMs?: number
}

export interface Http2Options {
  readonly streamWindowBytes: number
  readonly connectionWindowBytes: number
  readonly maxFrameBytes: number
  /** First ping after this much, then again this long after each answer. */
  readonly pingIntervalMs: number
  readonly pingTimeoutMs: number
}

export const defaultHttp2Options: Http2Options = {
  streamWindowBytes: 4 * 1024 * 1024,
  connectionWindowBytes: 16 * 1024 * 1024,
  maxFrameBytes: 1024 * 1024,
  pingIntervalMs: 10_000,
  pingTimeoutMs: 20_000,
}

export type TunnelHeaders = Readonly<Record<string, string>>

/** The CONNECT a client sends. */
export interface ConnectRequest {
  readonly authority: string
  /** Without pseudo headers. */
  readonly headers: TunnelHeaders
}

/**
 * The bytes of a tunnel without a Node stream between, for who moves many. Used together with the stream's events of end
 * and close, and instead of reading and writing it.
 */
export interface DirectBytes {
  /**
   * Takes all of it, for the peer: copied where it cannot go out at once. `framed`, when given, is a buffer that holds
   * the same bytes behind nine of room, which may be written over. False: send no more before `onReady`'s listener is called.
   */
  send(bytes: Buffer, framed?: Buffer): boolean
  onReady(listener: () => void): void
  /**
   * From now on each piece of the peer's bytes goes to `take`, valid during the call only. `flush` is called before the
   * stream breaks, when what was taken should not wait any longer.
   */
  receive(take: (part: Buffer) => void, flush: () => void): void
  /** So many of the bytes received are done with: the peer may send as many again. */
  consumed(bytes: number): void
}

/** An open tunnel: bytes both ways, half-closed by `end()`. */
export interface Tunnel {
  readonly stream: Duplex
  readonly direct?: DirectBytes
  /** Who is at the other end of the connection that carries it. */
  readonly peer: PeerCertificate
  /** The other side's headers: of the request at the server, of the 200 at the client. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Gives up both directions at once; the other side sees a reset. */
  reset(): void
  /** Whether the other side gave it up: after a reset the stream looks as if it had ended. */
  broken(): boolean
}

/** A client's connection: one TLS connection that carries tunnels. */
export interface TunnelConnection {
  readonly peer: PeerCertificate
  /** How many tunnels may be open at once, as the peer says. */
  readonly maxTunnels: number
  /** Tunnels open or being opened. */
  readonly activeTunnels: number
  /** False once it is closed, failing, or the peer has said goodbye. */
  readonly usable: boolean
  /** Tunnels that nobody reads from, here or there, leave so little of the connection's windows that others would wait for them. */
  readonly heldUp: boolean
  /** Opens one tunnel. Rejects with a HboneError; an abort resets what was begun. */
  connect(request: ConnectRequest, signal?: AbortSignal): Promise<Tunnel>
  /** Calls the listener when `activeTunnels` falls or `usable` turns false. */
  onChange(listener: () => void): void
  /** Resolves once everything of it is closed. */
  readonly closed: Promise<void>
  /** Ends after the tunnels in progress. */
  closeGracefully(): void
  /** Resets every tunnel, tells the peer, and closes: within a second, even when the peer reads nothing. */
  cut(): void
}

/** A CONNECT (or another request) that arrived, to be answered exactly once. */
export interface TunnelRequest {
  readonly method: string
  readonly authority: string
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Aborts when the client gives up before the answer. */
  readonly signal: AbortSignal
  accept(headers?: TunnelHeaders): Tunnel
  reject(status: number): void
}

/** A server's connection. */
export interface TunnelServerConnection {
  readonly peer: PeerCertificate
  /** Tells the peer to open no more tunnels; those in progress go on. */
  goAway(): void
  /** Resets every tunnel, tells the peer, and closes: within a second, even when the peer reads nothing. */
  cut(): void
  readonly closed: Promise<void>
  /** How the peer broke the protocol, or that it answers no more; absent when that is not why it ended. */
  readonly breach: Error | undefined
}
