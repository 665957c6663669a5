// What of TLS is spoken and what is not, against Node's own client and server where the other side is to be different.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { after, test } from 'node:test'
import tls from 'node:tls'
import { createTestAuthority, type TestCredentials } from '../../test/support/certificates.ts'
import { HboneError } from './errors.ts'
import { expectOneOf, expectTrustDomain } from './peer.ts'
import { acceptTls, connectTls } from './tls.ts'
import type { TlsOptions } from './types.ts'

const ids = { client: 'spiffe://cluster.local/ns/a/sa/client', server: 'spiffe://cluster.local/ns/a/sa/server' }
const authority = await createTestAuthority()
const client = await authority.issue(ids.client)
const server = await authority.issue(ids.server)
const listeners: net.Server[] = []
after(() => {
  for (const listener of listeners) listener.close()
})

async function listen(options: Partial<TlsOptions> = {}) {
  const outcomes: Promise<unknown>[] = []
  const listener = net.createServer({ pauseOnConnect: true }, (socket) => {
    const accepted = acceptTls(socket, {
      credentials: server,
      checkPeer: expectTrustDomain('cluster.local'),
      handshakeTimeoutMs: 2000,
      ...options,
    })
    outcomes.push(accepted.catch((error: unknown) => error))
    accepted.then(
      ({ socket }) => socket.on('error', () => undefined).pipe(socket),
      () => undefined,
    )
  })
  listeners.push(listener.listen(0, '127.0.0.1'))
  await once(listener, 'listening')
  return { port: (listener.address() as net.AddressInfo).port, outcomes }
}

const ours = (port: number, options: Partial<TlsOptions> = {}) =>
  connectTls(net.connect(port, '127.0.0.1'), {
    credentials: client,
    checkPeer: expectOneOf([ids.server]),
    handshakeTimeoutMs: 2000,
    ...options,
  })

const pemOf = ({ privateKey, certificateChain, roots }: TestCredentials) => ({
  key: privateKey,
  cert: certificateChain,
  ca: roots,
})

/** Node's client; resolves when its handshake is over, which says nothing yet of what the server thinks. */
async function other(port: number, options: tls.ConnectionOptions): Promise<tls.TLSSocket> {
  const socket = tls.connect({
    port,
    host: '127.0.0.1',
    ...pemOf(client),
    checkServerIdentity: () => undefined,
    ALPNProtocols: ['h2'],
    ...options,
  })
  socket.on('error', () => undefined)
  await once(socket, 'secureConnect')
  return socket
}

test('TLS 1.2 with ECDHE and AES-GCM where it is allowed, and only then', async () => {
  const older = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const
  const strict = await listen()
  await assert.rejects(other(strict.port, older))
  const lenient = await listen({ allowTls12: true })
  const socket = await other(lenient.port, older)
  assert.equal(socket.getProtocol(), 'TLSv1.2')
  assert.match(socket.getCipher().name, /^ECDHE-ECDSA-AES(128|256)-GCM-SHA(256|384)$/)
  socket.destroy()
  await assert.rejects(other(lenient.port, { ...older, ciphers: 'ECDHE-ECDSA-AES128-SHA256' }))
  const newer = await ours(lenient.port, { allowTls12: true })
  assert.equal(newer.socket.getProtocol(), 'TLSv1.3')
  newer.socket.destroy()
})

test('only AES-GCM suites of TLS 1.3', async () => {
  const { port } = await listen()
  await assert.rejects(other(port, { ciphers: 'TLS_CHACHA20_POLY1305_SHA256' }))
  const socket = await other(port, { ciphers: 'TLS_AES_128_GCM_SHA256' })
  assert.equal(socket.getCipher().name, 'TLS_AES_128_GCM_SHA256')
  socket.destroy()
})

test('with the key exchange group named, that one or none', async () => {
  const groups = 'X25519MLKEM768'
  const { port, outcomes } = await listen({ groups })
  const both = await ours(port, { groups })
  both.socket.destroy()
  await assert.rejects(other(port, { ecdhCurve: 'X25519' }))
  const refusal = await outcomes.at(-1)
  assert.ok(refusal instanceof HboneError)
  assert.deepEqual([refusal.code, refusal.message], ['TLS', 'no suitable key share'])
  const ordinary = tls.createServer({ ...pemOf(server), ecdhCurve: 'P-256', ALPNProtocols: ['h2'], requestCert: true })
  ordinary.on('tlsClientError', () => undefined)
  ordinary.listen(0, '127.0.0.1')
  listeners.push(ordinary)
  await once(ordinary, 'listening')
  await assert.rejects(ours((ordinary.address() as net.AddressInfo).port, { groups }), {
    code: 'TLS',
    message: 'ssl/tls alert handshake failure',
  })
})

test('nothing of one handshake is used in another', async () => {
  const { port } = await listen()
  const sessions: Buffer[] = []
  const first = await other(port, {})
  first.on('session', (session: Buffer) => sessions.push(session))
  first.write('hello')
  await once(first, 'data')
  first.destroy()
  for (const session of [...sessions, first.getSession()]) {
    if (session === undefined) continue
    const again = await other(port, { session })
    assert.equal(again.isSessionReused(), false)
    again.destroy()
  }
})

test('a certificate for servers is none for clients, and the other way round', async () => {
  const forServer = await authority.issueFor('server', ids.client)
  const forClient = await authority.issueFor('client', ids.server)
  const plain = await listen()
  const refused = await ours(plain.port, { credentials: forServer }).catch(() => undefined)
  const error = await plain.outcomes[0]
  assert.match(String(error), /the peer's certificate is not accepted: INVALID_PURPOSE/)
  refused?.socket.destroy()
  const misused = await listen({ credentials: forClient })
  await assert.rejects(ours(misused.port), /purpose/i)
})

test('why a client is refused is told here, whatever it hears itself', async () => {
  const { port, outcomes } = await listen()
  const stranger = await (await createTestAuthority()).issue(ids.client)
  const socket = await other(port, { ...pemOf(stranger), ca: authority.root }).catch(() => undefined)
  assert.match(String(await outcomes[0]), /not accepted: (CERT_SIGNATURE_FAILURE|UNABLE_TO_VERIFY_LEAF_SIGNATURE)/)
  socket?.destroy()
})

test('no server name is sent', async () => {
  let name: unknown
  const seeing = tls.createServer({ ...pemOf(server), ALPNProtocols: ['h2'] }, (socket) => {
    name = socket.servername
    socket.destroy()
  })
  seeing.listen(0, '127.0.0.1')
  listeners.push(seeing)
  await once(seeing, 'listening')
  const { socket } = await ours((seeing.address() as net.AddressInfo).port)
  await once(socket.resume(), 'close')
  assert.ok(name === false || name === null || name === undefined, String(name))
})
