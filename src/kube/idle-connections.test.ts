import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { watchIdleness } from './idle-connections.ts'

/** Counts the connections that requests at those times are made on, to a server that says this of how long it keeps one. */
async function connectionsFor(t: TestContext, times: readonly number[], keepAlive?: string): Promise<number> {
  const server = createServer((_, response) => {
    if (keepAlive !== undefined) response.setHeader('keep-alive', keepAlive)
    response.end()
  })
  server.keepAliveTimeout = 0
  let connections = 0
  server.on('connection', () => {
    connections += 1
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const agent = new Agent({ keepAlive: true })
  t.after(() => {
    agent.destroy()
    server.close()
  })
  let now = 0
  const idle = watchIdleness(agent, () => now)
  for (const time of times) {
    now = time
    idle.endOld()
    const sent = request({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', method: 'POST', agent })
    sent.end()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    idle.answered(response)
    const free = once(agent, 'free')
    response.resume()
    await free
  }
  return connections
}

test('a connection is used again while it is young, counted from its last answer', async (t) => {
  assert.equal(await connectionsFor(t, [0, 29_000, 58_000]), 1)
  assert.equal(await connectionsFor(t, [0, 2_000, 4_000], 'timeout=5'), 1)
})

test('one that was idle for half of the time its server keeps it is given up', async (t) => {
  assert.equal(await connectionsFor(t, [0, 2_500, 5_000], 'timeout=5'), 3)
  assert.equal(await connectionsFor(t, [0, 2_500], 'max=100, timeout=5'), 2)
  assert.equal(await connectionsFor(t, [0, 2_500], 'timeout=90'), 1)
  assert.equal(await connectionsFor(t, [0, 30_000]), 2)
})
