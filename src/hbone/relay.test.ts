import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import { after, test } from 'node:test'
import { type Relay, relay } from './index.ts'

const closers: (() => void)[] = []
after(() => {
  for (const close of closers) close()
})

const tcpEnd = (stream: net.Socket) => ({ stream, reset: () => void stream.resetAndDestroy() })

/** A client, a relay, and the server's side of the connection behind it. */
async function through(): Promise<{ client: net.Socket; server: net.Socket; running: Relay }> {
  const options = { allowHalfOpen: true }
  const backend = net.createServer(options).listen(0, '127.0.0.1')
  const front = net.createServer({ ...options, pauseOnConnect: true }).listen(0, '127.0.0.1')
  await Promise.all([once(backend, 'listening'), once(front, 'listening')])
  closers.push(
    () => backend.close(),
    () => front.close(),
  )
  const portOf = (server: net.Server) => {
    const address = server.address()
    assert.ok(address !== null && typeof address === 'object')
    return address.port
  }
  const accepted = once(front, 'connection') as Promise<[net.Socket]>
  const served = once(backend, 'connection') as Promise<[net.Socket]>
  const client = net.connect({ ...options, port: portOf(front), host: '127.0.0.1' })
  const [incoming] = await accepted
  const outgoing = net.connect({ ...options, port: portOf(backend), host: '127.0.0.1' })
  await once(outgoing, 'connect')
  const [server] = await served
  return { client, server, running: relay(tcpEnd(incoming), tcpEnd(outgoing)) }
}

async function readAll(stream: net.Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

test('each direction ends by itself', async () => {
  const { client, server, running } = await through()
  client.end('question')
  assert.equal((await readAll(server)).toString(), 'question')
  assert.equal(server.writable, true)
  server.end('answer')
  assert.equal((await readAll(client)).toString(), 'answer')
  assert.deepEqual(await running.done, {})
  assert.deepEqual(running.counts, { firstToSecond: 8, secondToFirst: 6 })
})

test('a server that speaks first is heard', async () => {
  const { client, server, running } = await through()
  server.write('220 ready\r\n')
  const [greeting] = await once(client, 'data')
  assert.equal(String(greeting), '220 ready\r\n')
  client.end()
  server.end()
  server.resume()
  await running.done
})

test('a reset of one side is a reset of the other, and no error', async () => {
  const { client, server, running } = await through()
  client.write('x')
  await once(server, 'data')
  const failed = once(server, 'error')
  client.resetAndDestroy()
  const [error] = await failed
  assert.equal(error.code, 'ECONNRESET')
  assert.deepEqual(await running.done, {})
})

test('a reader that stops holds the writer back', async () => {
  const { client, server, running } = await through()
  server.pause()
  const block = randomBytes(256 * 1024)
  let written = 0
  while (written < 64 * 1024 * 1024) {
    const more = client.write(block)
    written += block.length
    if (!more && !(await Promise.race([once(client, 'drain').then(() => true), stalled(client)]))) break
  }
  assert.ok(written < 32 * 1024 * 1024, `${written} bytes taken`)
  client.end()
  assert.equal((await readAll(server)).length, written)
  server.end()
  client.resume()
  await running.done
  assert.equal(running.counts.firstToSecond, written)
})

/** True never: resolves with false once nothing was sent for a while. */
function stalled(socket: net.Socket): Promise<boolean> {
  return new Promise((resolve) => {
    let last = socket.bytesWritten - socket.writableLength
    let same = 0
    const timer = setInterval(() => {
      const now = socket.bytesWritten - socket.writableLength
      same = now === last ? same + 1 : 0
      last = now
      if (same < 5) return
      clearInterval(timer)
      resolve(false)
    }, 20)
    socket.once('drain', () => clearInterval(timer))
  })
}

test('an aborted relay cuts both sides and tells why', async () => {
  const { client, server, running } = await through()
  const failures = Promise.all([once(client, 'error'), once(server, 'error')])
  running.abort(new Error('connection closed due to policy change'))
  await failures
  const { error } = await running.done
  assert.equal(error?.message, 'connection closed due to policy change')
})
