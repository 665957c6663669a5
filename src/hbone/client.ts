// A client's tunnel connection: HTTP/2 over an established mutual TLS connection.
import http2 from 'node:http2'
import { addAbortSignal, type Duplex } from 'node:stream'
import { HboneError, messageOf } from './errors.ts'
import { keepAlive } from './keepalive.ts'
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
/** The windows bound what a session holds; Node's own limit (in MB) must not be met before them. */
const maxSessionMemory = 1024

/** Opens a tunnel connection over a connected transport, which is taken over. Rejects with a HboneError. */
export async function openTunnelConnection(
  transport: Duplex,
  options: ClientOptions,
  signal?: AbortSignal,
): Promise<TunnelConnection> {
  const { socket, peer } = await connectTls(transport, options.tls, signal)
  const { streamWindowBytes, connectionWindowBytes, maxFrameBytes } = options.http2
  const session = http2.connect('https://tunnel.invalid', {
    createConnection: () => socket,
    maxSessionMemory,
    settings: {
      enablePush: false,
      initialWindowSize: streamWindowBytes,
      maxFrameSize: maxFrameBytes,
      maxHeaderListSize: maxHeaderListBytes,
    },
  })
  const timeoutMs = options.answerTimeoutMs ?? defaultAnswerTimeoutMs
  await settled(session, timeoutMs, signal)
  session.setLocalWindowSize(connectionWindowBytes)
  keepAlive(session, options.http2, () => {
    options.onPingTimeout?.()
    session.destroy()
  })

  const listeners = new Set<() => void>()
  const changed = () => {
    for (const listener of listeners) listener()
  }
  let active = 0
  let leaving = false
  const leave = () => {
    leaving = true
    changed()
  }
  session.on('goaway', leave)
  session.on('close', leave)
  session.on('error', leave)
  const closed = new Promise<void>((resolve) => session.once('close', resolve))

  return {
    peer,
    closed,
    get maxTunnels() {
      return session.remoteSettings.maxConcurrentStreams ?? Number.POSITIVE_INFINITY
    },
    get activeTunnels() {
      return active
    },
    get usable() {
      return !leaving && !session.closed && !session.destroyed
    },
    onChange: (listener) => void listeners.add(listener),
    closeGracefully() {
      if (session.closed || session.destroyed) return
      session.close()
      leave()
    },
    destroy: () => session.destroy(),
    async connect(request, connectSignal) {
      if (leaving || session.closed || session.destroyed) throw new HboneError('RETRY', 'the connection is closing')
      active += 1
      const stream = session.request(
        { ':method': 'CONNECT', ':authority': request.authority, ...request.headers },
        { endStream: false },
      )
      stream.once('close', () => {
        active -= 1
        changed()
      })
      return answer(stream, { request, peer, timeoutMs, signal: connectSignal })
    },
  }
}

/** Resolves when the peer's settings are here: before, its limits are not known, nor that it speaks HTTP/2 at all. */
function settled(session: http2.ClientHttp2Session, timeoutMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const finish = (error?: HboneError) => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      session.off('remoteSettings', succeed)
      session.off('close', closed)
      if (error === undefined) return resolve()
      session.destroy()
      reject(error)
    }
    let cause: Error | undefined
    const abort = () => finish(new HboneError('ABORTED', 'the caller gave up'))
    const succeed = () => finish()
    const closed = () =>
      finish(new HboneError('HTTP2', `http2 handshake failed: ${cause?.message ?? 'connection closed'}`, { cause }))
    const timer = setTimeout(
      () => finish(new HboneError('TIMEOUT', `http2 handshake failed: no settings within ${timeoutMs} ms`)),
      timeoutMs,
    )
    session.on('error', (error) => {
      cause = error
    })
    session.once('remoteSettings', succeed)
    session.once('close', closed)
    signal?.addEventListener('abort', abort)
    if (signal?.aborted === true) abort()
  })
}

function answer(
  stream: http2.ClientHttp2Stream,
  given: {
    readonly request: ConnectRequest
    readonly peer: PeerCertificate
    readonly timeoutMs: number
    readonly signal: AbortSignal | undefined
  },
): Promise<Tunnel> {
  const { request, peer, timeoutMs, signal } = given
  return new Promise((resolve, reject) => {
    let cause: unknown
    const finish = (outcome: Tunnel | HboneError) => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      stream.off('response', respond)
      stream.off('close', closed)
      stream.off('error', fail)
      if (!(outcome instanceof HboneError)) return resolve(outcome)
      stream.on('error', () => undefined)
      stream.close(http2.constants.NGHTTP2_CANCEL)
      reject(outcome)
    }
    const fail = (error: Error) => {
      cause = error
    }
    const closed = () => {
      // The peer promises not to have looked at a refused stream.
      const untouched = stream.rstCode === http2.constants.NGHTTP2_REFUSED_STREAM || stream.id === undefined
      const message = `h2 failed: ${cause === undefined ? `stream closed with code ${stream.rstCode}` : messageOf(cause)}`
      finish(new HboneError(untouched ? 'RETRY' : 'HTTP2', message, { cause }))
    }
    const abort = () => finish(new HboneError('ABORTED', 'the caller gave up'))
    const respond = (headers: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader) => {
      const status = headers[':status'] ?? 0
      if (status !== 200) return finish(new HboneError('STATUS', `http status: ${statusText(status)}`, { status }))
      finish({
        stream,
        peer,
        headers: plainHeaders(headers),
        reset: () => resetStream(stream),
        broken: () => isBroken(stream),
      })
    }
    const timer = setTimeout(
      () => finish(new HboneError('TIMEOUT', `no answer to CONNECT ${request.authority} within ${timeoutMs} ms`)),
      timeoutMs,
    )
    stream.on('error', fail)
    stream.once('close', closed)
    stream.once('response', respond)
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

/** Resets with CANCEL at once: `close()` alone would first wait for queued writes, which a stalled peer never takes. */
export function resetStream(stream: http2.Http2Stream): void {
  if (!stream.destroyed) addAbortSignal(AbortSignal.abort(), stream)
}

/** A reset with NO_ERROR comes after everything was said. */
export const isBroken = (stream: http2.Http2Stream): boolean =>
  stream.rstCode !== undefined && stream.rstCode !== http2.constants.NGHTTP2_NO_ERROR

/** Header values by name; a header that came several times is joined as HTTP joins them. */
export function plainHeaders(headers: http2.IncomingHttpHeaders): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  )
}
