// A client's tunnel connection: HTTP/2 over an established mutual TLS connection.
import type { Duplex } from 'node:stream'
import { HboneError } from './errors.ts'
import { createByteStream } from './http2/byte-stream.ts'
import { errorCode } from './http2/constants.ts'
import type { HeaderField } from './http2/hpack.ts'
import { createSession, type Session } from './http2/session.ts'
import type { SessionStream } from './http2/stream.ts'
import type { PeerCertificate } from './peer.ts'
import { connectTls } from './tls.ts'
import type { ConnectRequest, Http2Options, TlsOptions, Tunnel, TunnelConnection } from './types.ts'

export interface ClientOptions {
  readonly tls: TlsOptions
  readonly http2: Http2Options
  /** The peer must send its settings, and answer each CONNECT, within this. */
  readonly answerTimeoutMs?: number
  /** A peer that stopped answering pings. */
  readonly onPingTimeout?: () => void
}

const defaultAnswerTimeoutMs = 30_000
const maxHeaderListBytes = 16 * 1024

/** Opens a tunnel connection over a connected transport, which is taken over. Rejects with a HboneError. */
export async function openTunnelConnection(
  transport: Duplex,
  options: ClientOptions,
  signal?: AbortSignal,
): Promise<TunnelConnection> {
  const { socket, peer } = await connectTls(transport, options.tls, signal)
  const listeners = new Set<() => void>()
  const settings = Promise.withResolvers<void>()
  const session = createSession(socket, {
    role: 'client',
    http2: options.http2,
    maxHeaderListBytes,
    onSettings: settings.resolve,
    onChange() {
      for (const listener of listeners) listener()
    },
    onPingTimeout: () => options.onPingTimeout?.(),
  })
  const timeoutMs = options.answerTimeoutMs ?? defaultAnswerTimeoutMs
  await settled(session, settings.promise, timeoutMs, signal)

  return {
    peer,
    closed: session.closed,
    get maxTunnels() {
      return session.peer.maxConcurrentStreams
    },
    get activeTunnels() {
      return session.activeStreams
    },
    get usable() {
      return session.open
    },
    get heldUp() {
      return session.heldUp
    },
    onChange: (listener) => void listeners.add(listener),
    closeGracefully: () => session.leave(),
    cut: () => session.cut(),
    async connect(request, connectSignal) {
      if (!session.open) throw new HboneError('RETRY', 'the connection is closing')
      return openTunnel(session, { request, peer, timeoutMs, signal: connectSignal })
    },
  }
}

/** Resolves when the peer's settings are here: before, its limits are not known, nor that it speaks HTTP/2 at all. */
function settled(session: Session, settings: Promise<void>, timeoutMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const finish = (error?: HboneError) => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      if (error === undefined) return resolve()
      session.destroy()
      reject(error)
    }
    const abort = () => finish(new HboneError('ABORTED', 'the caller gave up'))
    const timer = setTimeout(
      () => finish(new HboneError('TIMEOUT', `http2 handshake failed: no settings within ${timeoutMs} ms`)),
      timeoutMs,
    )
    void settings.then(() => finish())
    void session.closed.then(() => {
      const cause = session.failure
      finish(new HboneError('HTTP2', `http2 handshake failed: ${cause?.message ?? 'connection closed'}`, { cause }))
    })
    signal?.addEventListener('abort', abort)
    if (signal?.aborted === true) abort()
  })
}

function openTunnel(
  session: Session,
  given: {
    readonly request: ConnectRequest
    readonly peer: PeerCertificate
    readonly timeoutMs: number
    readonly signal: AbortSignal | undefined
  },
): Promise<Tunnel> {
  const { request, peer, timeoutMs, signal } = given
  return new Promise((resolve, reject) => {
    let settledAlready = false
    const settle = (): boolean => {
      if (settledAlready) return false
      settledAlready = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      return true
    }
    const giveUp = (error: HboneError) => {
      if (!settle()) return
      bytes.stream.on('error', () => undefined)
      bytes.reset()
      reject(error)
    }
    const abort = () => giveUp(new HboneError('ABORTED', 'the caller gave up'))
    const timer = setTimeout(
      () => giveUp(new HboneError('TIMEOUT', `no answer to CONNECT ${request.authority} within ${timeoutMs} ms`)),
      timeoutMs,
    )
    const bytes = createByteStream((): SessionStream => port)
    const port: SessionStream = session.openStream(
      [
        [':method', 'CONNECT'],
        [':authority', request.authority],
        ...Object.entries(request.headers).map(([name, value]): HeaderField => [name.toLowerCase(), value]),
      ],
      {
        ...bytes.events,
        headers(fields) {
          const headers = plainHeaders(fields)
          const status = Number(headers[':status'])
          if (status !== 200) {
            return giveUp(new HboneError('STATUS', `http status: ${statusText(status)}`, { status }))
          }
          if (!settle()) return
          const { stream, direct, reset, broken } = bytes
          resolve({ stream, direct, peer, headers, reset: () => reset(), broken })
        },
        closed(code, error) {
          if (settle()) {
            bytes.stream.on('error', () => undefined)
            // The peer promises not to have looked at a refused stream.
            const untouched = code === errorCode.refusedStream
            const message = `h2 failed: ${error?.message ?? `stream closed with code ${code}`}`
            reject(new HboneError(untouched ? 'RETRY' : 'HTTP2', message, { cause: error }))
          }
          bytes.events.closed(code, error)
        },
      },
    )
    signal?.addEventListener('abort', abort)
    if (signal?.aborted === true) abort()
  })
}

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}

const statusText = (status: number) => `${status}${reasons[status] === undefined ? '' : ` ${reasons[status]}`}`

/** Header values by name; a header that came several times is joined as HTTP joins them. */
export function plainHeaders(fields: readonly HeaderField[]): Record<string, string | undefined> {
  const headers: Record<string, string | undefined> = Object.create(null)
  for (const [name, value] of fields) {
    const before = headers[name]
    headers[name] = before === undefined ? value : `${before}, ${value}`
  }
  return headers
}
