import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { makeCa } from '../../../test/support/ca.ts'
import { createCaClient } from './index.ts'

async function silentServer() {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {})
    // What is sent must be read, or the end is not seen.
    socket.resume()
    socket.once('close', () => open.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const at = server.address()
  return {
    server,
    open,
    address: `https://127.0.0.1:${typeof at === 'object' && at !== null ? at.port : 0}`,
    async close() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

test('a server that accepts and says nothing keeps no connection: not after the handshake’s time, and not after the client’s end', async () => {
  const silent = await silentServer()
  const { pem } = await makeCa({ name: 'root' })
  const options = { address: silent.address, roots: { kind: 'pem', pem }, impersonate: false } as const
  const identity = 'spiffe://cluster.local/ns/a/sa/b'
  const impatient = createCaClient({ ...options, handshakeTimeoutMs: 50, timeoutMs: 5_000 })
  const asked = impatient.requestCertificate(identity).catch(() => {})
  const [first] = (await once(silent.server, 'connection')) as [Socket]
  await once(first, 'close')
  await once(silent.server, 'connection')
  impatient.close()
  await asked

  const patient = createCaClient({ ...options, timeoutMs: 200 })
  const asking = patient.requestCertificate(identity)
  const [pending] = (await once(silent.server, 'connection')) as [Socket]
  await assert.rejects(asking, { code: 'CA_CALL' })
  patient.close()
  if (!pending.destroyed) await once(pending, 'close')
  await silent.close()
})
