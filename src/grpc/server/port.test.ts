// What may be done to a port before anybody has proved who he is, and what becomes of those who have.
import assert from 'node:assert/strict'
import { constants } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { Client, credentials, type ServerDuplexStream, type ServiceError, status } from '@grpc/grpc-js'
import { createTestPki } from '../../../test/support/test-pki.ts'
import {
  type CallTransport,
  type ConnectionEnd,
  type ConnectionLimits,
  createConnections,
  openGrpcPort,
} from './index.ts'

const pki = await createTestPki()
const { privateKey: key, chain: cert } = await pki.issue('localhost')
const client = await pki.issue('spiffe://cluster.local/ns/a/sa/b')
const asIs = (bytes: Buffer): Buffer => bytes

type Call = ServerDuplexStream<Buffer, Buffer>

/** Echoes; what starts with `known` proves who it is. */
async function serve(t: TestContext, limits: Partial<ConnectionLimits> = {}, isSecure = true) {
  const ends: ConnectionEnd[] = []
  const transports: CallTransport[] = []
  const received: Buffer[] = []
  const connections = createConnections(
    { provingMs: 10_000, idleMs: 10_000, mostUnproven: 100, ...limits },
    (end) => void ends.push(end),
  )
  const definition = { path: '/test/Echo', requestStream: true, responseStream: true } as const
  const port = await openGrpcPort({
    host: '127.0.0.1',
    port: 0,
    tls: isSecure ? { key, cert, ca: pki.roots, secureOptions: constants.SSL_OP_NO_TICKET } : undefined,
    channel: {},
    connections,
    addServices: (server) =>
      server.addService(
        {
          Echo: {
            ...definition,
            requestSerialize: asIs,
            requestDeserialize: asIs,
            responseSerialize: asIs,
            responseDeserialize: asIs,
          },
        },
        {
          Echo(call: Call) {
            const transport = connections.of(call)
            assert.ok(transport)
            transports.push(transport)
            call.on('error', () => {})
            call.on('end', () => call.end())
            call.on('data', (message: Buffer) => {
              received.push(message)
              if (message.toString().startsWith('known')) transport.connection.admit()
              call.write(message)
            })
          },
        },
      ),
  })
  t.after(() => port.close(0))
  return { port, connections, ends, transports, received }
}

function openCall(t: TestContext, port: number, isSecure = true) {
  const channel = isSecure
    ? credentials.createSsl(Buffer.from(pki.roots), Buffer.from(client.privateKey), Buffer.from(client.chain))
    : credentials.createInsecure()
  const grpc = new Client(`localhost:${port}`, channel, { 'grpc.use_local_subchannel_pool': 1 })
  t.after(() => grpc.close())
  const call = grpc.makeBidiStreamRequest('/test/Echo', asIs, asIs)
  const failed = new Promise<ServiceError>((resolve) => call.on('error', resolve))
  const answers = call[Symbol.asyncIterator]()
  return {
    call,
    grpc,
    failed,
    async ask(text: string): Promise<string> {
      call.write(Buffer.from(text))
      return String((await answers.next()).value)
    },
  }
}

async function rawSocket(t: TestContext, port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

async function tlsSocket(t: TestContext, port: number): Promise<TLSSocket> {
  const socket = connectTls({ port, host: 'localhost', ca: pki.roots, ALPNProtocols: ['h2'] })
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  await once(socket, 'secureConnect')
  return socket
}

/** Reads to the end, so that the end is seen. */
function closed(socket: Socket): Promise<unknown> {
  socket.resume()
  return socket.closed ? Promise.resolve() : once(socket, 'close')
}

const condition = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5))
}

describe('a connection whose callers prove nothing', { timeout: 20_000 }, () => {
  test('is ended after a while, whatever it has done: nothing, a handshake, a session, calls', async (t) => {
    const { port, connections, ends } = await serve(t, { provingMs: 400 })
    const silent = await rawSocket(t, port.port)
    const shaken = await tlsSocket(t, port.port)
    const session = connectHttp2(`https://localhost:${port.port}`, { ca: pki.roots })
    session.on('error', () => {})
    t.after(() => session.destroy())
    const calling = openCall(t, port.port)
    assert.equal(await calling.ask('who am I'), 'who am I')
    await condition(() => connections.unproven === 4)
    await Promise.all([closed(silent), closed(shaken), once(session, 'close'), calling.failed])
    await condition(() => connections.size === 0)
    assert.equal(connections.unproven, 0)
    assert.deepEqual(ends, Array(4).fill('unproven'))
  })

  test('makes room for others when there are too many: first those of the address that has most', async (t) => {
    const { port, connections, ends } = await serve(t, { mostUnproven: 3 })
    const neighbour = connect({ port: port.port, host: '127.0.0.1', localAddress: '127.0.0.2' })
    neighbour.on('error', () => {})
    t.after(() => neighbour.destroy())
    await once(neighbour, 'connect')
    const flood: Socket[] = []
    for (let at = 0; at < 5; at += 1) flood.push(await rawSocket(t, port.port))
    await Promise.all(flood.slice(0, 3).map(closed))
    assert.deepEqual(ends, Array(3).fill('crowded'))
    assert.equal(connections.size, 3)
    assert.equal(neighbour.closed, false)
    const known = openCall(t, port.port)
    assert.equal(await known.ask('known'), 'known')
    assert.equal(connections.unproven, 2)
    for (let at = 0; at < 5; at += 1) flood.push(await rawSocket(t, port.port))
    assert.equal(await known.ask('still here'), 'still here')
  })
})

describe('a connection whose caller has proved who it is', { timeout: 20_000 }, () => {
  test('stays for as long as it has a call', async (t) => {
    const { port, connections, ends } = await serve(t, { provingMs: 200, idleMs: 200 })
    const { call, ask } = openCall(t, port.port)
    await ask('known')
    const startedAt = performance.now()
    await condition(() => performance.now() - startedAt > 800)
    assert.equal(await ask('still here'), 'still here')
    call.end()
    // The client is told to leave, does so, and comes again with its next call.
    await condition(() => connections.size === 0)
    assert.deepEqual(ends, [])
  })

  test('is made anew by its client after it was idle', async (t) => {
    const { port, connections } = await serve(t, { idleMs: 200 })
    const { grpc, call, ask } = openCall(t, port.port)
    await ask('known')
    call.end()
    await condition(() => connections.size === 0)
    const again = grpc.makeBidiStreamRequest('/test/Echo', asIs, asIs)
    again.on('error', () => {})
    again.write(Buffer.from('again'))
    const [answer] = (await once(again, 'data')) as [Buffer]
    assert.equal(answer.toString(), 'again')
    again.end()
  })
})

test('a call knows the socket of its own connection, with the certificate that was shown on it', {
  timeout: 20_000,
}, async (t) => {
  const { port, transports } = await serve(t)
  const calls = [openCall(t, port.port), openCall(t, port.port)]
  for (const { ask } of calls) await ask('x')
  const [one, other] = transports.map(({ connection }) => connection)
  assert.notEqual(one, other)
  assert.equal(one?.tls?.authorized, true)
  assert.match(one?.tls?.getPeerX509Certificate()?.subjectAltName ?? '', /spiffe:\/\/cluster\.local\/ns\/a\/sa\/b/)
  assert.equal(`${one?.tls?.remoteAddress}:${one?.tls?.remotePort}`, one?.peer)
})

test('no session is resumed: certificates are verified each time', { timeout: 20_000 }, async (t) => {
  const { port } = await serve(t)
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    const options = { port: port.port, host: 'localhost', ca: pki.roots, ALPNProtocols: ['h2'], maxVersion }
    const first = connectTls(options)
    const sessions: Buffer[] = []
    first.on('session', (session: Buffer) => sessions.push(session))
    await once(first, 'secureConnect')
    await once(first, 'data')
    const session = sessions[0] ?? first.getSession()
    first.destroy()
    const second = connectTls({ ...options, ...(session === undefined ? {} : { session }) })
    await once(second, 'secureConnect')
    assert.equal(second.isSessionReused(), false, maxVersion)
    second.destroy()
  }
})

test('while a call is held no more of it is read than one message', { timeout: 20_000 }, async (t) => {
  const { port, transports, received } = await serve(t)
  const { call, ask } = openCall(t, port.port)
  await ask('known')
  const [transport] = transports
  transport?.hold(true)
  const large = Buffer.alloc(200_000)
  for (let at = 0; at < 50; at += 1) call.write(large)
  await condition(() => received.length === 2)
  const startedAt = performance.now()
  await condition(() => performance.now() - startedAt > 300)
  assert.equal(received.length, 2)
  transport?.hold(false)
  await condition(() => received.length === 51)
  call.cancel()
})

test('a port without TLS knows its connections, too', { timeout: 20_000 }, async (t) => {
  const { port, transports, connections } = await serve(t, {}, false)
  const { ask, failed } = openCall(t, port.port, false)
  await ask('known')
  assert.equal(transports[0]?.connection.tls, undefined)
  transports[0]?.connection.destroy('forced')
  assert.equal((await failed).code, status.UNAVAILABLE)
  await condition(() => connections.size === 0)
})

test('a port that closes leaves no connection, be it in the middle of a handshake or frozen', {
  timeout: 20_000,
}, async (t) => {
  const { port, connections } = await serve(t)
  const silent = await rawSocket(t, port.port)
  const { ask, failed } = openCall(t, port.port)
  await ask('known')
  const startedAt = performance.now()
  const ended = port.close(500)
  assert.equal(await ask('under way'), 'under way')
  await Promise.all([ended, closed(silent), failed])
  assert.ok(performance.now() - startedAt > 450)
  await assert.rejects(rawSocket(t, port.port), /ECONNREFUSED/)
  assert.equal(connections.size, 0)
})
