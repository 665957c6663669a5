// Tunnels with HTTP/2 that is not ours at the other end, and whole relays with many bytes both ways.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import http2 from 'node:http2'
import net from 'node:net'
import { after, before, test } from 'node:test'
import { createTestAuthority } from '../../test/support/certificates.ts'
import { serveMeshTunnels } from '../../test/support/mesh-tunnels.ts'
import {
  defaultHttp2Options,
  expectOneOf,
  openTunnelConnection,
  relay,
  type TlsCredentials,
  type TunnelConnection,
  type TunnelRequest,
} from './index.ts'

const id = 'spiffe://cluster.local/ns/a/sa/one'
const closers: (() => void)[] = []
let credentials: TlsCredentials
let nodeTls: { key: string; cert: string; ca: string }

before(async () => {
  credentials = await (await createTestAuthority()).issue(id)
  nodeTls = { key: credentials.privateKey, cert: credentials.certificateChain, ca: credentials.roots }
})
after(() => {
  for (const close of closers) close()
})

async function portOf(server: net.Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  closers.push(() => server.close())
  await once(server, 'listening')
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  return address.port
}

async function ourServer(handle: (request: TunnelRequest) => void): Promise<number> {
  return portOf(
    net.createServer({ pauseOnConnect: true }, (socket) => {
      serveMeshTunnels(socket, credentials, handle).then(
        (connection) => closers.push(() => connection.cut()),
        () => undefined,
      )
    }),
  )
}

async function ourClient(port: number): Promise<TunnelConnection> {
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const connection = await openTunnelConnection(socket, {
    tls: { credentials, checkPeer: expectOneOf([id]) },
    http2: defaultHttp2Options,
  })
  closers.push(() => connection.cut())
  return connection
}

const tcpEnd = (stream: net.Socket) => ({ stream, reset: () => void stream.resetAndDestroy() })

/** Sends `bytes` in pieces of many sizes and returns the digest of what comes back until the end. */
async function exchange(
  stream: net.Socket | http2.Http2Stream | import('node:stream').Duplex,
  bytes: Buffer,
): Promise<string> {
  const received = createHash('sha256')
  const done = (async () => {
    for await (const chunk of stream) received.update(chunk)
  })()
  for (let at = 0, size = 1; at < bytes.length; at += size, size = Math.min(size * 3, 700_001)) {
    if (!stream.write(bytes.subarray(at, at + size))) await once(stream, 'drain')
  }
  stream.end()
  await done
  return received.digest('hex')
}

const digestOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

test('a client that is not ours: many streams at once, each with its own bytes, in small windows and large', async () => {
  const backend = await portOf(net.createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket)))
  const port = await ourServer((request) => {
    const upstream = net.connect({ port: backend, host: '127.0.0.1', allowHalfOpen: true }, () => {
      relay(request.accept({ baggage: 'a=b' }), tcpEnd(upstream))
    })
  })
  for (const initialWindowSize of [1000, 65_535, 4 * 1024 * 1024]) {
    const session = http2.connect(`https://127.0.0.1:${port}`, {
      ...nodeTls,
      checkServerIdentity: () => undefined,
      settings: { initialWindowSize, maxFrameSize: initialWindowSize > 65_535 ? 1024 * 1024 : 16_384 },
    })
    const size = initialWindowSize < 65_535 ? 100_000 : 5_000_000
    await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const bytes = randomBytes(size + index)
        const stream = session.request({
          ':method': 'CONNECT',
          ':authority': '10.0.0.1:80',
          forwarded: `for="${index}"`,
        })
        const [headers] = await once(stream, 'response')
        assert.equal(headers[':status'], 200)
        assert.equal(headers.baggage, 'a=b')
        assert.equal(await exchange(stream, bytes), digestOf(bytes))
      }),
    )
    session.close()
    await once(session, 'close')
  }
})

test('a server that is not ours, with small windows and large; a refusal; a goodbye', async () => {
  for (const initialWindowSize of [500, 65_535, 4 * 1024 * 1024]) {
    const server = http2.createSecureServer({ ...nodeTls, requestCert: true, settings: { initialWindowSize } })
    server.on('stream', (stream, headers) => {
      if (headers[':authority'] === 'no:1') return stream.respond({ ':status': 503 }, { endStream: true })
      stream.respond({ ':status': 200 })
      stream.pipe(stream)
    })
    const goodbye = once(server, 'session')
    const connection = await ourClient(await portOf(server))
    const front = await portOf(
      net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
        void connection
          .connect({ authority: '10.0.0.1:80', headers: {} })
          .then((tunnel) => relay(tcpEnd(socket), tunnel))
      }),
    )
    await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const bytes = randomBytes((initialWindowSize < 65_535 ? 60_000 : 5_000_000) + index)
        const socket = net.connect({ port: front, host: '127.0.0.1', allowHalfOpen: true })
        assert.equal(await exchange(socket, bytes), digestOf(bytes))
      }),
    )
    await assert.rejects(connection.connect({ authority: 'no:1', headers: {} }), { code: 'STATUS', status: 503 })
    const [session] = (await goodbye) as [http2.ServerHttp2Session]
    session.close()
    await connection.closed
    assert.equal(connection.usable, false)
    server.close()
  }
})

test('a relay of ours at both ends: many connections both ways at once, and a slow reader loses nothing', async () => {
  const backend = await portOf(net.createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket)))
  const port = await ourServer((request) => {
    const upstream = net.connect({ port: backend, host: '127.0.0.1', allowHalfOpen: true }, () => {
      relay(request.accept(), tcpEnd(upstream))
    })
  })
  const connection = await ourClient(port)
  const outcomes: Promise<unknown>[] = []
  const front = await portOf(
    net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      void connection.connect({ authority: '10.0.0.1:80', headers: {} }).then((tunnel) => {
        outcomes.push(relay(tcpEnd(socket), tunnel).done)
      })
    }),
  )
  await Promise.all(
    Array.from({ length: 24 }, async (_, index) => {
      const bytes = randomBytes(index * 400_000)
      const socket = net.connect({ port: front, host: '127.0.0.1', allowHalfOpen: true })
      assert.equal(await exchange(socket, bytes), digestOf(bytes))
    }),
  )
  assert.deepEqual(new Set((await Promise.all(outcomes)).map((outcome) => JSON.stringify(outcome))), new Set(['{}']))

  const bytes = randomBytes(24 * 1024 * 1024)
  const slow = net.connect({ port: front, host: '127.0.0.1', allowHalfOpen: true })
  slow.end(bytes)
  const fast = net.connect({ port: front, host: '127.0.0.1', allowHalfOpen: true })
  assert.equal(await exchange(fast, bytes.subarray(0, 1_000_000)), digestOf(bytes.subarray(0, 1_000_000)))
  const received = createHash('sha256')
  for await (const chunk of slow) received.update(chunk)
  assert.equal(received.digest('hex'), digestOf(bytes))
})

test('a ping is answered while much is waiting to be sent', async () => {
  const size = 40 * 1024 * 1024
  const port = await ourServer((request) => {
    const { stream } = request.accept()
    stream.on('error', () => undefined)
    stream.end(Buffer.alloc(size))
  })
  const session = http2.connect(`https://127.0.0.1:${port}`, {
    ...nodeTls,
    checkServerIdentity: () => undefined,
    settings: { initialWindowSize: size },
  })
  await once(session, 'connect')
  session.setLocalWindowSize(size)
  const stream = session.request({ ':method': 'CONNECT', ':authority': '10.0.0.1:80' })
  let received = 0
  stream.on('data', (chunk: Buffer) => {
    received += chunk.length
    session.ping(() => undefined)
  })
  await once(stream, 'end')
  assert.equal(received, size)
  session.destroy()
  await once(session, 'close')
})

test('what was sent before a reset arrives before the reset', async () => {
  for (let round = 0; round < 20; round += 1) {
    const { promise: heard, resolve } = Promise.withResolvers<string>()
    const backend = await portOf(
      net.createServer({ allowHalfOpen: true }, (socket) => {
        let text = ''
        socket.on('data', (chunk) => {
          text += chunk.toString()
        })
        socket.on('error', () => undefined)
        socket.on('close', () => resolve(text))
        socket.write('unread')
      }),
    )
    const port = await ourServer((request) => {
      const upstream = net.connect({ port: backend, host: '127.0.0.1', allowHalfOpen: true }, () => {
        relay(request.accept(), tcpEnd(upstream))
      })
    })
    const connection = await ourClient(port)
    const tunnel = await connection.connect({ authority: '10.0.0.1:80', headers: {} })
    await once(tunnel.stream, 'readable')
    tunnel.direct?.send(Buffer.from('last words'))
    tunnel.reset()
    assert.equal(await heard, 'last words')
  }
})

test('both roles announce the windows, frames, headers and streams that they take', async () => {
  const windows = { initialWindowSize: 4 * 1024 * 1024, maxFrameSize: 1024 * 1024 }
  const pick = ({
    initialWindowSize,
    maxFrameSize,
    maxHeaderListSize,
    maxConcurrentStreams,
    enablePush,
  }: http2.Settings) => ({
    initialWindowSize,
    maxFrameSize,
    maxHeaderListSize,
    maxConcurrentStreams,
    enablePush,
  })
  /** Once the peer has widened the window of the connection, which it does right behind its settings. */
  const connectionWindow = async (session: http2.Http2Session) => {
    await new Promise<void>((resolve, reject) => session.ping((error) => (error ? reject(error) : resolve())))
    return session.state.remoteWindowSize
  }

  const client = http2.connect(`https://127.0.0.1:${await ourServer(() => undefined)}`, {
    ...nodeTls,
    checkServerIdentity: () => undefined,
  })
  const [ofServer] = (await once(client, 'remoteSettings')) as [http2.Settings]
  assert.deepEqual(pick(ofServer), {
    ...windows,
    maxHeaderListSize: 64 * 1024,
    maxConcurrentStreams: 200,
    // Only clients say anything of it.
    enablePush: true,
  })
  assert.equal(await connectionWindow(client), 16 * 1024 * 1024)
  client.destroy()

  const server = http2.createSecureServer({ ...nodeTls, requestCert: true })
  const arrived = once(server, 'session') as Promise<[http2.ServerHttp2Session]>
  const connection = await ourClient(await portOf(server))
  const [session] = await arrived
  assert.equal(await connectionWindow(session), 16 * 1024 * 1024)
  assert.deepEqual(pick(session.remoteSettings), {
    ...windows,
    maxHeaderListSize: 16 * 1024,
    maxConcurrentStreams: pick(session.remoteSettings).maxConcurrentStreams,
    enablePush: false,
  })
  connection.cut()
  server.close()
})
