import { once } from 'node:events'
import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { keepAlive } from './keepalive.ts'

test('a ping that comes due between the destruction of a session and its close is left out', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  await once(session, 'connect')
  keepAlive(session, { pingIntervalMs: 5, pingTimeoutMs: 1_000 }, () => {})
  const closed = once(session, 'close')
  // After this turn come the timers, and only then what ends the session.
  setImmediate(() => {
    session.destroy()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
  })
  await closed
})
