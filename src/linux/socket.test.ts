import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import net from 'node:net'
import { test } from 'node:test'
import { createSocket, descriptorOf, resetSocket } from './index.ts'
import { libc } from './libc.ts'

/** Both ends of a connection; the client does not read. */
async function connected(server: net.Server) {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const accepted = new Promise<net.Socket>((resolve) => server.once('connection', resolve))
  const client = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1')
  client.pause()
  const socket = await accepted
  return { client, socket }
}

const linux = { skip: process.platform !== 'linux' }

for (const [state, prepare] of [
  ['that is open', () => undefined],
  ['whose end waits behind what its peer does not read', (socket: net.Socket) => socket.end(Buffer.alloc(16 << 20))],
  ['whose end is being sent', (socket: net.Socket) => socket.end()],
] as const) {
  test(`a connection ${state} is reset, and its descriptor closed`, { ...linux, timeout: 10_000 }, async () => {
    const server = net.createServer({ allowHalfOpen: true })
    const { client, socket } = await connected(server)
    try {
      prepare(socket)
      const fd = descriptorOf(socket)
      const closed = new Promise((resolve) => socket.once('close', resolve))
      const error = new Promise<NodeJS.ErrnoException>((resolve) => client.once('error', resolve))
      resetSocket(socket)
      await closed
      assert.equal(descriptorOf(socket), undefined)
      assert.equal(existsSync(`/proc/self/fd/${fd}`), false)
      client.resume()
      assert.equal((await error).code, 'ECONNRESET')
    } finally {
      client.destroy()
      socket.destroy()
      server.close()
    }
  })
}

test(
  'every TCP socket sends at once, and those with keepalive have it as given, accepted ones as well',
  linux,
  async () => {
    const keepalive = { timeSeconds: 70, intervalSeconds: 8, retries: 5, userTimeout: true }
    const option = (socket: net.Socket, level: number, name: number): number => {
      const [value, length] = [Buffer.alloc(4), Buffer.from([4, 0, 0, 0])]
      assert.equal(libc().getsockopt(descriptorOf(socket) ?? -1, level, name, value, length), 0)
      return value.readInt32LE()
    }
    const optionsOf = (socket: net.Socket) => ({
      noDelay: option(socket, 6, 1) !== 0,
      isKept: option(socket, 1, 9) !== 0,
      timeSeconds: option(socket, 6, 4),
      intervalSeconds: option(socket, 6, 5),
      retries: option(socket, 6, 6),
      userTimeoutMs: option(socket, 6, 18),
    })
    const wanted = {
      noDelay: true,
      isKept: true,
      timeSeconds: 70,
      intervalSeconds: 8,
      retries: 5,
      userTimeoutMs: 110_000,
    }
    const listening = createSocket({
      family: 4,
      type: 'stream',
      tcp: { keepalive },
      bind: { ip: '127.0.0.1', port: 0 },
    })
    const server = net.createServer()
    await new Promise<void>((resolve) => server.listen({ fd: listening.fd }, resolve))
    const { port } = server.address() as net.AddressInfo
    const accepted = new Promise<net.Socket>((resolve) => server.once('connection', resolve))
    const { fd } = createSocket({ family: 4, type: 'stream', tcp: { keepalive } })
    const client = new net.Socket(Object.assign({ fd }, { manualStart: true }))
    client.connect(port, '127.0.0.1')
    const socket = await accepted
    try {
      assert.deepEqual(optionsOf(socket), wanted)
      assert.deepEqual(optionsOf(client), wanted)
      const plain = createSocket({ family: 4, type: 'stream', tcp: { keepalive: undefined } })
      const other = new net.Socket(Object.assign({ fd: plain.fd }, { manualStart: true }))
      const { noDelay, isKept, userTimeoutMs } = optionsOf(other)
      assert.deepEqual({ noDelay, isKept, userTimeoutMs }, { noDelay: true, isKept: false, userTimeoutMs: 0 })
      other.destroy()
    } finally {
      client.destroy()
      socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    }
  },
)
