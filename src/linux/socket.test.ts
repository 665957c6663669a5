import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import net from 'node:net'
import { test } from 'node:test'
import { descriptorOf, resetSocket } from './index.ts'

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
