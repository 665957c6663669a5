import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { test } from 'node:test'
import dnsPacket from 'dns-packet'
import { createExchange } from './transport.ts'

const query = dnsPacket.encode({ type: 'query', id: 5, questions: [{ name: 'a.example', type: 'A' }] })
const answer = (id = 5, name = 'a.example'): Buffer =>
  dnsPacket.encode({
    type: 'response',
    id,
    questions: [{ name, type: 'A' }],
    answers: [{ type: 'A', name, data: '1.2.3.4' }],
  })

test('over UDP, the answer with the right id and question is taken, forged ones are not', async () => {
  const server = dgram.createSocket('udp4')
  server.on('message', (_, from) => {
    for (const bytes of [answer(6), answer(5, 'b.example'), Buffer.from('x'), answer()])
      server.send(bytes, from.port, from.address)
  })
  server.bind(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const options = {
      server: { ip: '127.0.0.1', port: server.address().port },
      protocol: 'udp',
      timeoutMs: 2000,
    } as const
    assert.deepEqual(await createExchange()(query, options), answer())
  } finally {
    server.close()
  }
})

test('over TCP, an answer in pieces is put together', async () => {
  const server = net.createServer((socket) => {
    socket.once('data', async () => {
      const framed = Buffer.concat([Buffer.from([0, answer().length]), answer()])
      socket.write(framed.subarray(0, 1))
      setImmediate(() => socket.end(framed.subarray(1)))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    const options = { server: { ip: '127.0.0.1', port }, protocol: 'tcp', timeoutMs: 2000 } as const
    assert.deepEqual(await createExchange()(query, options), answer())
  } finally {
    server.close()
  }
})

test('a server that is silent or absent is an error in bounded time', async () => {
  const silent = dgram.createSocket('udp4')
  silent.bind(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address()
  try {
    const options = { server: { ip: '127.0.0.1', port }, timeoutMs: 20 } as const
    await assert.rejects(createExchange()(query, { ...options, protocol: 'udp' }), { code: 'TIMEOUT' })
    await assert.rejects(createExchange()(query, { ...options, protocol: 'tcp' }), { code: 'UPSTREAM_FAILED' })
  } finally {
    silent.close()
  }
})
