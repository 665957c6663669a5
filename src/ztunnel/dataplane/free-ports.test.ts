import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { freePort } from '../../../test/support/free-port.ts'
import { checkPortsAreFree } from './free-ports.ts'

const [outbound, plaintext, hbone, dns, socks5] = [
  await freePort(),
  await freePort(),
  await freePort(),
  await freePort(),
  await freePort(),
]
const options = { proxy: true, dns: true, ipv6: false, ports: { outbound, plaintext, hbone, dns, socks5 } }

test('free ports are free, and stay so', () => {
  checkPortsAreFree(options)
  checkPortsAreFree(options)
})

for (const [name, port] of Object.entries(options.ports)) {
  test(`the ${name} port is taken: the address is named`, async () => {
    const taken = net.createServer().listen({ port, host: '127.0.0.1' })
    await once(taken, 'listening')
    try {
      assert.throws(() => checkPortsAreFree(options), {
        message: new RegExp(`^failed to bind to address (0\\.0\\.0\\.0|127\\.0\\.0\\.1):${port}: .*EADDRINUSE`),
      })
    } finally {
      taken.close()
      await once(taken, 'close')
    }
  })
}

test('a listener that shares its port is in the way as well', async () => {
  const shared = net.createServer().listen({ port: hbone, host: '0.0.0.0', reusePort: true })
  await once(shared, 'listening')
  assert.throws(() => checkPortsAreFree(options), new RegExp(`:${hbone}: `))
  shared.close()
  await once(shared, 'close')
})

test('so is a datagram socket at the port for DNS, and nothing else counts without a proxy', async () => {
  const socket = createSocket('udp4').bind(dns, '127.0.0.1')
  await once(socket, 'listening')
  assert.throws(() => checkPortsAreFree(options), new RegExp(`127\\.0\\.0\\.1:${dns}: `))
  socket.close()
  const taken = net.createServer().listen({ port: outbound, host: '127.0.0.1' })
  await once(taken, 'listening')
  checkPortsAreFree({ ...options, proxy: false })
  assert.throws(() => checkPortsAreFree({ ...options, dns: false }), new RegExp(`:${outbound}: `))
  taken.close()
})
