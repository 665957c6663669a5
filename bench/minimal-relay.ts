// The yardstick: the shortest relay that does the same work, as a pair of processes. `tcp` copies bytes, `tls` carries each
// connection in a mutual TLS connection of its own, `http2` in HTTP/2 CONNECT streams over mutual TLS, with Node's own
// streams and nothing else.
import { readFileSync } from 'node:fs'
import http2 from 'node:http2'
import net from 'node:net'
import tls from 'node:tls'

const [, , kind, side, credentialsPath = '', pairs = '', peer = ''] = process.argv
const { key, cert, ca } = JSON.parse(readFileSync(credentialsPath, 'utf8')) as { key: string; cert: string; ca: string }
const tunnelPort = 15508
const windows = { initialWindowSize: 4 * 1024 * 1024, maxFrameSize: 1024 * 1024 }
const options = { allowHalfOpen: true }

for (const pair of pairs.split(',')) {
  const [listenPort = 0, targetPort = 0] = pair.split(':').map(Number)
  if (kind === 'tcp' && side === 'far') relayTo(listenPort, '127.0.0.1', targetPort)
  if (kind === 'tcp' && side === 'near') relayTo(listenPort, peer, listenPort)
  if (kind === 'tls' && side === 'far') relayFromTls(listenPort, targetPort)
  if (kind === 'tls' && side === 'near') relayToTls(listenPort)
  if (kind === 'http2' && side === 'near') tunnelTo(listenPort, targetPort)
}
if (kind === 'http2' && side === 'far') serveTunnels()
process.stdout.write('ready\n')

function join(a: net.Socket | http2.Http2Stream, b: net.Socket | http2.Http2Stream): void {
  a.on('error', () => b.destroy())
  b.on('error', () => a.destroy())
  a.pipe(b)
  b.pipe(a)
}

function relayTo(port: number, host: string, target: number): void {
  net
    .createServer({ ...options, noDelay: true }, (socket) =>
      join(socket, net.connect({ ...options, host, port: target, noDelay: true })),
    )
    .listen(port)
}

function relayFromTls(port: number, target: number): void {
  tls
    .createServer({ key, cert, ca, requestCert: true, rejectUnauthorized: true, noDelay: true }, (socket) =>
      join(socket, net.connect({ ...options, host: '127.0.0.1', port: target, noDelay: true })),
    )
    .listen(port)
}

function relayToTls(port: number): void {
  net
    .createServer({ ...options, noDelay: true }, (socket) => {
      const tunnel = tls.connect({ host: peer, port, key, cert, ca, checkServerIdentity: () => undefined })
      tunnel.setNoDelay(true)
      join(socket, tunnel)
    })
    .listen(port)
}

let session: http2.ClientHttp2Session | undefined

function tunnelTo(port: number, target: number): void {
  net
    .createServer({ ...options, noDelay: true }, (socket) => {
      if (session === undefined || session.closed || session.destroyed) {
        session = http2.connect(`https://${peer}:${tunnelPort}`, {
          key,
          cert,
          ca,
          settings: windows,
          checkServerIdentity: () => undefined,
        })
        session.on('connect', (opened) => opened.setLocalWindowSize(16 * 1024 * 1024))
      }
      const stream = session.request(
        { ':method': 'CONNECT', ':authority': `127.0.0.1:${target}` },
        { endStream: false },
      )
      join(socket, stream)
    })
    .listen(port)
}

function serveTunnels(): void {
  const server = http2.createSecureServer({
    key,
    cert,
    ca,
    requestCert: true,
    rejectUnauthorized: true,
    settings: windows,
  })
  server.on('session', (opened) => opened.setLocalWindowSize(16 * 1024 * 1024))
  server.on('stream', (stream, headers) => {
    const port = Number(headers[':authority']?.split(':')[1])
    const socket = net.connect({ ...options, host: '127.0.0.1', port, noDelay: true }, () => {
      stream.respond({ ':status': 200 })
      join(socket, stream)
    })
    socket.on('error', () => stream.destroy())
  })
  server.listen(tunnelPort)
}
