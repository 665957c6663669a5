// Clients that take nothing of what they are sent are cut off, with all that waits for them; those that are slow are not.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { create, toBinary } from '@bufbuild/protobuf'
import type { CallTransport } from '../grpc/server/index.ts'
import { createMetricsRegistry, renderMetrics } from '../observability/index.ts'
import { discovery } from '../proto/index.ts'
import { address, condition, log, nodeId, pki, type Running, stallingProxy, startServer } from './test-streams.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const path = '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources'
const headers = {
  ':method': 'POST',
  ':path': path,
  'content-type': 'application/grpc',
  te: 'trailers',
  authorization: 'Bearer good',
}

/** One message as gRPC frames it: asks for everything. */
function question(): Buffer {
  const request = create(discovery.DeltaDiscoveryRequestSchema, { typeUrl: address, node: { id: nodeId } })
  const body = toBinary(discovery.DeltaDiscoveryRequestSchema, request)
  const head = Buffer.alloc(5)
  head.writeUInt32BE(body.byteLength, 1)
  return Buffer.concat([head, body])
}

/** A process that asks for everything and reads it, until it is stopped. */
const reader = `
const { connect } = require('node:http2')
const { port, ca, headers, question, window } = JSON.parse(process.env.ASK)
const session = connect('https://localhost:' + port, { ca, settings: { initialWindowSize: window } })
session.on('connect', () => session.setLocalWindowSize(window))
const stream = session.request(headers)
stream.write(Buffer.from(question, 'base64'))
stream.once('data', () => process.stdout.write('reads\\n'))
stream.resume()
for (const one of [session, stream]) one.on('error', () => process.exit())
`

async function frozenReader(t: TestContext, port: number, window: number) {
  const ask = { port, ca: pki.roots, headers, question: question().toString('base64'), window }
  const child = spawn(process.execPath, ['-e', reader], { env: { ...process.env, ASK: JSON.stringify(ask) } })
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  child.kill('SIGSTOP')
  return child
}

/** A stream of this process that reads when it is told to. */
async function openStream(t: TestContext, port: number, window = 65_535): Promise<ClientHttp2Stream> {
  const session = connectHttp2(`https://localhost:${port}`, { ca: pki.roots, settings: { initialWindowSize: window } })
  session.on('error', () => {})
  t.after(() => session.destroy())
  const stream = session.request(headers)
  stream.on('error', () => {})
  stream.write(question())
  stream.resume()
  await once(stream, 'data')
  stream.pause()
  return stream
}

/** Buffers go one turn after the objects that held them. */
async function held(): Promise<number> {
  collect()
  await setImmediate()
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const megabyte = 1024 * 1024
const resources = (count: number, size: number) => ({
  set: Array.from({ length: count }, (_, at) => ({ name: `w${at}`, text: `${at}${'x'.repeat(size)}` })),
})

/** Resolves when a message with the change is on its way to the only client. */
async function pushing(server: Running, change: Parameters<Running['addresses']['change']>[0]): Promise<void> {
  const watch = server.xds.connections()[0]?.watches.get(address)
  const sent = watch?.nonceSent
  server.addresses.change(change)
  await condition(() => watch?.nonceSent !== sent)
}

function logLines() {
  const lines: string[] = []
  return { lines, log: { ...log, warn: (message: string) => void lines.push(message) } }
}

describe('a client that takes nothing', { timeout: 60_000 }, () => {
  for (const window of [65_535, 2 ** 30]) {
    test(`because its process is frozen, with a window of ${window}`, async (t) => {
      const metrics = createMetricsRegistry()
      const { lines, log } = logLines()
      await using server = await startServer(undefined, { metrics, log, sendTimeoutMs: 500 })
      server.addresses.change(resources(1, 10))
      await frozenReader(t, server.port, window)
      assert.equal(server.xds.connections().length, 1)
      assert.equal(server.connections.size, 1)
      const before = await held()
      // More than the buffers of two kernels hold.
      await pushing(server, resources(8, 5 * megabyte))
      server.addresses.change({ remove: Array.from({ length: 8 }, (_, at) => `w${at}`) })
      await condition(() => server.xds.connections().length === 0)
      assert.equal(server.connections.size, 0)
      assert.deepEqual(lines, ['a client is cut off: it takes nothing of what it is sent'])
      assert.match(await renderMetrics(metrics, 'text'), /pilot_xds_write_timeout 1\n/)
      let more = Infinity
      for (let look = 0; look < 100 && more > 2 * megabyte; look += 1) more = (await held()) - before
      assert.ok(more <= 2 * megabyte, `${more} bytes are still held`)
    })
  }

  test('because it does not open the window of its stream, whatever it does else', async (t) => {
    await using server = await startServer(undefined, { sendTimeoutMs: 500 })
    server.addresses.change(resources(1, 10))
    const stream = await openStream(t, server.port)
    const pings = setInterval(() => stream.session?.ping(() => {}), 700)
    t.after(() => clearInterval(pings))
    const closed = once(stream, 'close')
    server.addresses.change(resources(1, megabyte))
    await condition(() => server.xds.connections().length === 0)
    await closed
    assert.equal(server.connections.size, 0)
  })
})

describe('a client that is slow takes something of a message now and then, and is seen to', { timeout: 60_000 }, () => {
  for (const window of [65_535, 2 ** 30]) {
    test(`with a window of ${window}`, async (t) => {
      let transport: CallTransport | undefined
      await using server = await startServer(undefined, {
        sendTimeoutMs: 0,
        transportOf: (call) => {
          transport = server.connections.of(call)
          return transport
        },
      })
      server.addresses.change(resources(1, 10))
      const relay = await stallingProxy(server.port)
      t.after(() => relay.close())
      const stream = await openStream(t, relay.port, window)
      relay.pause()
      stream.resume()
      // More than the buffers of the kernel for two connections hold.
      await pushing(server, resources(1, 100 * megabyte))
      const [connection] = server.xds.connections()
      const watch = connection?.watches.get(address)
      assert.ok(transport)
      for (let piece = 0; piece < 5; piece += 1) {
        const { bytesTaken } = transport.connection
        relay.resume()
        await condition(() => (transport?.connection.bytesTaken ?? 0) > bytesTaken)
        relay.pause()
      }
      assert.notEqual(watch?.nonceSent, watch?.nonceAcked)
    })
  }
})

describe('an operator', { timeout: 30_000 }, () => {
  test('disconnects a client that does not take note of it', async (t) => {
    await using server = await startServer()
    server.addresses.change(resources(1, 10))
    await frozenReader(t, server.port, 65_535)
    await pushing(server, resources(1, 30 * megabyte))
    const [connection] = server.xds.connections()
    assert.ok(connection)
    server.xds.disconnect(connection)
    await condition(() => server.xds.connections().length === 0)
    assert.equal(server.connections.size, 0)
  })

  test('disconnects a client that reads without harm to its other streams', async (t) => {
    await using server = await startServer()
    server.addresses.change(resources(1, 10))
    const stream = await openStream(t, server.port)
    const other = (stream.session as ClientHttp2Session).request(headers)
    other.write(question())
    await condition(() => server.xds.connections().length === 2)
    const [connection] = server.xds.connections()
    assert.ok(connection)
    stream.resume()
    server.xds.disconnect(connection)
    await condition(() => server.xds.connections().length === 1)
    assert.equal(server.connections.size, 1)
  })
})
