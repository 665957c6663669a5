import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http2 from 'node:http2'
import net from 'node:net'
import { after, before, test } from 'node:test'
import tls from 'node:tls'
import { createTestAuthority, type TestAuthority } from '../../test/support/certificates.ts'
import {
  defaultHttp2Options,
  expectOneOf,
  expectTrustDomain,
  openTunnelConnection,
  relay,
  serveTunnels,
  type TlsCredentials,
  type TunnelConnection,
  type TunnelRequest,
  type TunnelServerConnection,
} from './index.ts'

const clientId = 'spiffe://cluster.local/ns/a/sa/client'
const serverId = 'spiffe://cluster.local/ns/a/sa/server'
let authority: TestAuthority
let client: TlsCredentials
let server: TlsCredentials
const open: { cut(): void }[] = []

before(async () => {
  authority = await createTestAuthority()
  client = await authority.issue(clientId)
  server = await authority.issue(serverId)
})
after(() => {
  for (const one of open) one.cut()
})

interface Listening {
  readonly port: number
  readonly failures: unknown[]
  readonly connections: TunnelServerConnection[]
  close(): void
}

async function listen(
  handle: (request: TunnelRequest) => void,
  options: { credentials?: TlsCredentials; trustDomain?: string } = {},
): Promise<Listening> {
  const failures: unknown[] = []
  const connections: TunnelServerConnection[] = []
  const listener = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    const { credentials = server, trustDomain = 'cluster.local' } = options
    const tlsOptions = { credentials, checkPeer: expectTrustDomain(trustDomain), handshakeTimeoutMs: 500 }
    serveTunnels(socket, { tls: tlsOptions, http2: defaultHttp2Options }, handle).then(
      (connection) => connections.push(connection),
      (error) => failures.push(error),
    )
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  assert.ok(address !== null && typeof address === 'object')
  const close = () => {
    listener.close()
    for (const one of connections) one.cut()
  }
  open.push({ cut: close })
  return { port: address.port, failures, connections, close }
}

async function dial(
  port: number,
  options: { credentials?: TlsCredentials; expected?: readonly string[]; timeoutMs?: number } = {},
): Promise<TunnelConnection> {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  await once(socket, 'connect')
  const { credentials = client, expected = [serverId], timeoutMs = 2000 } = options
  const connection = await openTunnelConnection(socket, {
    tls: { credentials, checkPeer: expectOneOf(expected), handshakeTimeoutMs: timeoutMs },
    http2: defaultHttp2Options,
    answerTimeoutMs: timeoutMs,
  })
  open.push(connection)
  return connection
}

const echo = (request: TunnelRequest) => {
  const { stream } = request.accept({ baggage: 'k8s.namespace.name=a' })
  stream.pipe(stream)
}

async function readAll(stream: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}

test('bytes go both ways through a tunnel, and both sides know each other', async () => {
  let seen: TunnelRequest | undefined
  const listening = await listen((request) => {
    seen = request
    echo(request)
  })
  const connection = await dial(listening.port)
  assert.deepEqual(connection.peer.spiffeIds, [serverId])
  const headers = { baggage: 'k8s.namespace.name=b', forwarded: 'for="1.2.3.4:5"' }
  const tunnel = await connection.connect({ authority: '10.0.0.1:80', headers })
  assert.equal(tunnel.headers.baggage, 'k8s.namespace.name=a')
  tunnel.stream.end('hello')
  assert.equal((await readAll(tunnel.stream)).toString(), 'hello')
  assert.equal(seen?.method, 'CONNECT')
  assert.equal(seen?.authority, '10.0.0.1:80')
  assert.equal(seen?.headers.forwarded, headers.forwarded)
  assert.deepEqual(listening.connections[0]?.peer.spiffeIds, [clientId])
})

test('64 MB arrive complete, slowly read, without being held in memory', async () => {
  const listening = await listen(echo)
  const connection = await dial(listening.port)
  const { stream } = await connection.connect({ authority: '10.0.0.1:80', headers: {} })
  const block = randomBytes(1024 * 1024)
  const sent = createHash('sha256')
  const sending = (async () => {
    for (let index = 0; index < 64; index += 1) {
      sent.update(block)
      if (!stream.write(block)) await once(stream, 'drain')
    }
    stream.end()
  })()
  const received = createHash('sha256')
  for await (const chunk of stream) received.update(chunk)
  await sending
  assert.equal(received.digest('hex'), sent.digest('hex'))
})

test('a peer with another identity is refused, and told in full', async () => {
  const listening = await listen(echo)
  await assert.rejects(dial(listening.port, { expected: ['spiffe://cluster.local/ns/a/sa/serve'] }), {
    code: 'PEER_IDENTITY',
    message: `identity verification error: peer did not present the expected SAN (spiffe://cluster.local/ns/a/sa/serve), got ${serverId}`,
  })
  await assert.rejects(dial(listening.port, { expected: [] }), { code: 'PEER_IDENTITY' })
})

test('a certificate of another root is refused on either side', async () => {
  const other = await createTestAuthority()
  const listening = await listen(echo)
  const stranger = await other.issue(clientId)
  await assert.rejects(dial(listening.port, { credentials: { ...stranger, roots: authority.root } }))
  await assert.rejects(dial(listening.port, { credentials: stranger }), { code: 'TLS' })
  assert.equal(listening.connections.length, 0)
})

test('a client of another trust domain is refused', async () => {
  const listening = await listen(echo, { trustDomain: 'other.example' })
  await assert.rejects(dial(listening.port))
  assert.match(String(listening.failures[0]), /did not present the expected trustdomain \(other.example\)/)
})

test('a client without a certificate is refused, and so is TLS 1.2', async () => {
  const listening = await listen(echo)
  for (const options of [
    {},
    { key: client.privateKey, cert: client.certificateChain, maxVersion: 'TLSv1.2' as const },
  ]) {
    const socket = tls.connect({ port: listening.port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
    socket.on('secureConnect', () => socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'))
    socket.on('error', () => undefined)
    await new Promise((resolve) => socket.once('close', resolve))
  }
  assert.equal(listening.connections.length, 0)
  assert.equal(listening.failures.length, 2)
})

test('a peer that never speaks is given up in time on either side', async () => {
  const listening = await listen(echo)
  const silentClient = net.connect(listening.port, '127.0.0.1')
  silentClient.on('error', () => undefined)
  silentClient.resume()
  await once(silentClient, 'close')
  assert.equal(listening.failures.length, 1)

  const silent = net.createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const address = silent.address()
  assert.ok(address !== null && typeof address === 'object')
  await assert.rejects(dial(address.port, { timeoutMs: 50 }), { code: 'TIMEOUT' })
  silent.close()

  const mute = await listen(() => undefined)
  const connection = await dial(mute.port, { timeoutMs: 100 })
  await assert.rejects(connection.connect({ authority: '10.0.0.1:80', headers: {} }), { code: 'TIMEOUT' })
})

test('a refusal is an error with its status, and the connection serves on', async () => {
  const listening = await listen((request) => (request.authority.endsWith(':81') ? request.reject(401) : echo(request)))
  const connection = await dial(listening.port)
  await assert.rejects(connection.connect({ authority: '10.0.0.1:81', headers: {} }), {
    code: 'STATUS',
    status: 401,
    message: 'http status: 401 Unauthorized',
  })
  const tunnel = await connection.connect({ authority: '10.0.0.1:80', headers: {} })
  tunnel.stream.end('still')
  assert.equal((await readAll(tunnel.stream)).toString(), 'still')
})

test('a reset is CANCEL on the wire, at once, even when the peer takes nothing', async () => {
  const listener = http2.createSecureServer({
    key: server.privateKey,
    cert: server.certificateChain,
    ca: server.roots,
    requestCert: true,
  })
  open.push({ cut: () => listener.close() })
  const code = new Promise<number>((resolve) => {
    listener.on('stream', (stream) => {
      stream.on('error', () => undefined)
      stream.on('close', () => resolve(stream.rstCode))
      stream.respond({ ':status': 200 })
    })
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  assert.ok(address !== null && typeof address === 'object')
  const connection = await dial(address.port)
  const tunnel = await connection.connect({ authority: '10.0.0.1:80', headers: {} })
  tunnel.stream.on('error', () => undefined)
  while (tunnel.stream.write(Buffer.alloc(1024 * 1024)) || tunnel.stream.writableLength < 8 * 1024 * 1024);
  tunnel.reset()
  assert.equal(await code, http2.constants.NGHTTP2_CANCEL)
  connection.cut()
})

test('goodbye of the server: tunnels in progress go on, new ones need another connection', async () => {
  const listening = await listen(echo)
  const connection = await dial(listening.port)
  const tunnel = await connection.connect({ authority: '10.0.0.1:80', headers: {} })
  const changed = new Promise<void>((resolve) => connection.onChange(resolve))
  listening.connections[0]?.goAway()
  await changed
  assert.equal(connection.usable, false)
  await assert.rejects(connection.connect({ authority: '10.0.0.1:80', headers: {} }), { code: 'RETRY' })
  tunnel.stream.end('last words')
  assert.equal((await readAll(tunnel.stream)).toString(), 'last words')
  await connection.closed
})

test('a tunnel inside a tunnel', async () => {
  const inner = await listen(echo)
  const outer = await listen((request) => {
    const tunnel = request.accept()
    const socket = net.connect({ port: inner.port, host: '127.0.0.1', allowHalfOpen: true })
    relay(tunnel, { stream: socket, reset: () => socket.resetAndDestroy() })
  })
  const first = await dial(outer.port)
  const carrier = await first.connect({ authority: 'inner.example:80', headers: {} })
  const second = await openTunnelConnection(carrier.stream, {
    tls: { credentials: client, checkPeer: expectOneOf([serverId]) },
    http2: defaultHttp2Options,
  })
  const tunnel = await second.connect({ authority: 'inner.example:80', headers: {} })
  tunnel.stream.end('deep')
  assert.equal((await readAll(tunnel.stream)).toString(), 'deep')
  second.cut()
})
