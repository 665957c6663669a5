// The server's side of tunnels: mutual TLS, then HTTP/2; every request is handed to one function.
import http2 from 'node:http2'
import type { Socket } from 'node:net'
import { isBroken, plainHeaders, resetStream } from './client.ts'
import { HboneError } from './errors.ts'
import { keepAlive } from './keepalive.ts'
import type { PeerCertificate } from './peer.ts'
import { acceptTls } from './tls.ts'
import type { Http2Options, TlsOptions, TunnelRequest, TunnelServerConnection } from './types.ts'

export interface ServerOptions {
  readonly tls: TlsOptions
  readonly http2: Http2Options
}

const maxConcurrentStreams = 200
const maxHeaderListBytes = 64 * 1024
const maxSessionMemory = 1024

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
  const { streamWindowBytes, connectionWindowBytes, maxFrameBytes } = options.http2
  const session = http2.performServerHandshake(socket, {
    maxSessionMemory,
    settings: {
      initialWindowSize: streamWindowBytes,
      maxFrameSize: maxFrameBytes,
      maxConcurrentStreams,
      maxHeaderListSize: maxHeaderListBytes,
    },
  })
  session.setLocalWindowSize(connectionWindowBytes)
  const closed = new Promise<void>((resolve) => session.once('close', resolve))
  const connection: TunnelServerConnection = {
    peer,
    closed,
    goAway() {
      if (!session.closed && !session.destroyed) session.close()
    },
    destroy: () => session.destroy(),
  }
  // The session's end is told by its close; the streams carry their own errors.
  session.on('error', () => undefined)
  keepAlive(session, options.http2, () => session.destroy())
  session.on('stream', (stream, headers) => handle(requestOf(stream, headers, peer), connection))
  return connection
}

function requestOf(
  stream: http2.ServerHttp2Stream,
  headers: http2.IncomingHttpHeaders,
  peer: PeerCertificate,
): TunnelRequest {
  const gone = new AbortController()
  const abort = () => gone.abort(new HboneError('ABORTED', 'the client gave up'))
  const ignoreError = () => undefined
  stream.on('error', ignoreError)
  stream.once('close', abort)
  const plain = plainHeaders(headers)
  return {
    method: plain[':method'] ?? '',
    authority: plain[':authority'] ?? '',
    headers: plain,
    signal: gone.signal,
    accept(answer = {}) {
      stream.off('close', abort)
      stream.respond({ ':status': 200, ...answer }, { sendDate: false } as http2.ServerStreamResponseOptions)
      stream.off('error', ignoreError)
      return { stream, peer, headers: plain, reset: () => resetStream(stream), broken: () => isBroken(stream) }
    },
    reject(status) {
      stream.off('close', abort)
      if (stream.destroyed || stream.closed) return
      stream.respond({ ':status': status }, { endStream: true })
      // The client may still be sending: what it sends is not wanted.
      stream.close(http2.constants.NGHTTP2_NO_ERROR)
    },
  }
}
