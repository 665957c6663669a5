// The server's side of tunnels: mutual TLS, then HTTP/2; every request is handed to one function.
import type { Socket } from 'node:net'
import { plainHeaders } from './client.ts'
import { HboneError } from './errors.ts'
import { createByteStream } from './http2/byte-stream.ts'
import { errorCode, Http2ConnectionError } from './http2/constants.ts'
import type { HeaderField } from './http2/hpack.ts'
import { createSession } from './http2/session.ts'
import type { SessionStream, StreamEvents } from './http2/stream.ts'
import type { PeerCertificate } from './peer.ts'
import { acceptTls } from './tls.ts'
import type { Http2Options, TlsOptions, TunnelRequest, TunnelServerConnection } from './types.ts'

export interface ServerOptions {
  readonly tls: TlsOptions
  readonly http2: Http2Options
}

const maxConcurrentStreams = 200
const maxHeaderListBytes = 64 * 1024

/**
 * Serves tunnels on an accepted socket, which is taken over. Resolves after the TLS handshake; rejects with a HboneError
 * when it fails, and the socket is then closed. `handle` must accept or reject each request once.
 */
export async function serveTunnels(
  transport: Socket,
  options: ServerOptions,
  handle: (request: TunnelRequest, connection: TunnelServerConnection) => void,
): Promise<TunnelServerConnection> {
  const { socket, peer } = await acceptTls(transport, options.tls)
  const closed = Promise.withResolvers<void>()
  const connection: TunnelServerConnection = {
    peer,
    closed: closed.promise,
    get breach() {
      return session.failure instanceof Http2ConnectionError ? session.failure : undefined
    },
    goAway: () => session.leave(),
    cut: () => session.cut(),
  }
  const session = createSession(socket, {
    role: 'server',
    http2: options.http2,
    maxHeaderListBytes,
    maxConcurrentStreams,
    onChange: () => undefined,
    onPingTimeout: () => undefined,
    onStream(port, fields) {
      const { request, events } = requestOf(port, fields, peer)
      // The caller learns of the connection before it learns of its requests.
      queueMicrotask(() => handle(request, connection))
      return events
    },
  })
  void session.closed.then(() => closed.resolve())
  return connection
}

function requestOf(
  port: SessionStream,
  fields: readonly HeaderField[],
  peer: PeerCertificate,
): { readonly request: TunnelRequest; readonly events: StreamEvents } {
  const gone = new AbortController()
  const bytes = createByteStream(() => port)
  const ignoreError = () => undefined
  bytes.stream.on('error', ignoreError)
  const headers = plainHeaders(fields)
  let answered = false
  const events: StreamEvents = {
    ...bytes.events,
    headers: () => undefined,
    closed(code, error) {
      bytes.events.closed(code, error)
      if (!answered) gone.abort(new HboneError('ABORTED', 'the client gave up'))
    },
  }
  const request: TunnelRequest = {
    method: headers[':method'] ?? '',
    authority: headers[':authority'] ?? '',
    headers,
    signal: gone.signal,
    accept(answer = {}) {
      answered = true
      const given = Object.entries(answer).map(([name, value]): HeaderField => [name.toLowerCase(), value])
      port.headers([[':status', '200'], ...given], false)
      bytes.stream.off('error', ignoreError)
      const { stream, direct, reset, broken } = bytes
      return { stream, direct, peer, headers, reset: () => reset(), broken }
    },
    reject(status) {
      answered = true
      port.headers([[':status', String(status)]], true)
      // The client may still be sending: what it sends is not wanted.
      bytes.reset(errorCode.noError)
    },
  }
  return { request, events }
}
