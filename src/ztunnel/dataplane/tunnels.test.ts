// Tunnels whose peer is revoked while they come about: nothing is carried over them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import type { Duplex } from 'node:stream'
import { before, type TestContext, test } from 'node:test'
import tls from 'node:tls'
import { createTestAuthority, type TestAuthority } from '../../../test/support/certificates.ts'
import { meshOf } from '../../../test/support/mesh.ts'
import { serveMeshTunnels } from '../../../test/support/mesh-tunnels.ts'
import {
  createTunnelPool,
  defaultHttp2Options,
  relay,
  type TlsCredentials,
  type TunnelRequest,
} from '../../hbone/index.ts'
import type { Workload } from '../model.ts'
import type { PodContext } from './pod-context.ts'
import { openInnerTunnel, openTunnel } from './tunnels.ts'

const idOf = (account: string): string => `spiffe://cluster.local/ns/n/sa/${account}`
const revokedText = 'connection closed: peer certificate revoked by CRL'
let authority: TestAuthority
let client: TlsCredentials
let gateway: TlsCredentials
let server: TlsCredentials

before(async () => {
  authority = await createTestAuthority()
  client = await authority.issue(idOf('client'))
  gateway = await authority.issue(idOf('gateway'))
  server = await authority.issue(idOf('server'))
})

function world(t: TestContext) {
  const revoked = new Set<string>()
  let refusedHandshakes = 0
  const pool = createTunnelPool({ maxTunnelsPerConnection: 10, unusedTimeoutMs: 60_000 })
  const mesh = meshOf(
    'workloads: [{uid: c, name: c, namespace: n, serviceAccount: client, workloadIps: [10.0.0.1], services: {}}]',
  )
  const source = mesh.workload('c')
  assert.ok(source)
  const context = {
    namespace: undefined,
    options: { http2: defaultHttp2Options, allowTls12: false, connectTimeoutMs: 5000 },
    pool,
    services: {
      credentials: async () => client,
      revocations: {
        check: (chain: readonly { readonly subjectAltName?: string | undefined }[]) =>
          revoked.has(chain[0]?.subjectAltName ?? '') ? revokedText : undefined,
      },
      metrics: { crlRejections: { with: () => ({ inc: () => (refusedHandshakes += 1) }) } },
    },
  } as unknown as PodContext
  const sockets = new Set<net.Socket>()
  t.after(() => {
    pool.close()
    for (const socket of sockets) socket.destroy()
  })
  const listen = async (onSocket: (socket: net.Socket) => void): Promise<{ ip: string; port: number }> => {
    const listener = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      sockets.add(socket)
      socket.on('error', () => undefined)
      onSocket(socket)
    })
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    t.after(() => void listener.close())
    return { ip: '127.0.0.1', port: (listener.address() as net.AddressInfo).port }
  }
  return {
    context,
    source,
    pool,
    listen,
    revoke: (account: string) => revoked.add(`URI:${idOf(account)}`),
    refusedHandshakes: () => refusedHandshakes,
  }
}

const target = (source: Workload, to: { ip: string; port: number }, account: string) => ({
  source,
  sourceIp: '10.0.0.1',
  to,
  authority: '10.0.0.9:80',
  headers: {},
  expectedIdentities: [idOf(account)],
})

/** However it ends. */
const closeOf = (stream: Duplex): Promise<void> => new Promise((resolve) => stream.once('close', () => resolve()))

const never = new AbortController().signal

test('a server revoked between the handshake and its settings is left before anything is asked of it', async (t) => {
  const { context, source, pool, listen, revoke, refusedHandshakes } = world(t)
  const shaken = Promise.withResolvers<tls.TLSSocket>()
  const tlsServer = tls.createServer({
    key: server.privateKey,
    cert: server.certificateChain,
    ca: server.roots,
    requestCert: true,
    ALPNProtocols: ['h2'],
  })
  tlsServer.on('secureConnection', (secure) => {
    secure.on('error', () => undefined)
    secure.on('end', () => secure.end())
    // The client's greeting shows that for it the handshake is over.
    secure.once('data', () => shaken.resolve(secure))
  })
  const to = await listen((socket) => void tlsServer.emit('connection', socket))
  const opening = openTunnel(context, target(source, to, 'server'), never)
  const refused = assert.rejects(opening, { code: 'PEER_IDENTITY', message: revokedText })
  const secure = await shaken.promise
  revoke('server')
  let more = Buffer.alloc(0)
  secure.on('data', (bytes: Buffer) => {
    more = Buffer.concat([more, bytes])
  })
  const closed = closeOf(secure)
  // SETTINGS of nothing.
  secure.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]))
  await refused
  await closed
  assert.ok(!more.includes('10.0.0.9'), 'no request was sent')
  assert.equal(pool.connections, 0)
  assert.equal(refusedHandshakes(), 0)
})

test('a server revoked before its handshake is refused in it, and counted', async (t) => {
  const { context, source, listen, revoke, refusedHandshakes } = world(t)
  const to = await listen((socket) => {
    serveMeshTunnels(socket, server, () => assert.fail('asked')).catch(() => undefined)
  })
  revoke('server')
  await assert.rejects(openTunnel(context, target(source, to, 'server'), never), { message: revokedText })
  assert.equal(refusedHandshakes(), 1)
})

/** A gateway that carries tunnels to a server, which hands over what it is asked. */
async function doubleWorld(t: TestContext) {
  const one = world(t)
  const requests = Promise.withResolvers<TunnelRequest>()
  const inner = await one.listen((socket) => {
    serveMeshTunnels(socket, server, requests.resolve).catch(() => undefined)
  })
  const outer = await one.listen((socket) => {
    void serveMeshTunnels(socket, gateway, (request) => {
      const onward = net.connect({ ...inner, host: inner.ip, allowHalfOpen: true })
      onward.on('error', () => undefined)
      relay(request.accept(), { stream: onward, reset: () => onward.destroy() })
    })
  })
  const carrier = await openTunnel(one.context, target(one.source, outer, 'gateway'), never)
  carrier.stream.on('error', () => undefined)
  const opening = openInnerTunnel(one.context, carrier, target(one.source, outer, 'server'), never)
  return { ...one, carrier, opening, request: requests.promise }
}

test('a tunnel in a tunnel: its end revoked before it has answered gets nothing of what is carried', async (t) => {
  const { carrier, opening, request, revoke } = await doubleWorld(t)
  const refused = assert.rejects(opening, { code: 'PEER_IDENTITY', message: revokedText })
  const asked = await request
  revoke('server')
  const { stream } = asked.accept()
  let received = 0
  stream.on('data', (bytes: Buffer) => {
    received += bytes.length
  })
  stream.on('error', () => undefined)
  const over = closeOf(stream)
  await refused
  await over
  assert.equal(received, 0)
  assert.ok(carrier.stream.destroyed || !carrier.stream.writable, 'the carrier ends with it')
})

test('a tunnel in a tunnel tells the certificates of its own end beside those of the gateway', async (t) => {
  const { carrier, opening, request } = await doubleWorld(t)
  ;(await request).accept().stream.on('error', () => undefined)
  const { peerChain, peerIdentity, tunnel } = await opening
  tunnel.stream.on('error', () => undefined)
  assert.equal(peerChain[0]?.subjectAltName, `URI:${idOf('server')}`)
  assert.equal(carrier.peer.chain[0]?.subjectAltName, `URI:${idOf('gateway')}`)
  assert.equal(peerIdentity?.serviceAccount, 'server')
})
