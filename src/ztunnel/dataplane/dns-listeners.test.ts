import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { freePort } from '../../../test/support/free-port.ts'
import { silentLogging } from '../../observability/index.ts'
import { listenDns } from './dns-listeners.ts'
import type { PodContext } from './pod-context.ts'
import type { DnsAnswerer } from './types.ts'

async function listen(dns: DnsAnswerer) {
  const port = await freePort()
  const stopping = new AbortController()
  const context = {
    pod: { name: 'p', namespace: 'ns', serviceAccount: 'sa' },
    namespace: undefined,
    options: { ports: { dns: port }, dnsAddress: '127.0.0.1', ipv6: false, reusePort: false },
    services: { log: silentLogging().scope('test') },
    stopping: stopping.signal,
  }
  const listener = await listenDns(context as unknown as PodContext, dns)
  return {
    port,
    [Symbol.dispose]() {
      listener.close()
      stopping.abort()
    },
  }
}

const framed = (query: Buffer): Buffer => Buffer.concat([Uint8Array.of(query.length >> 8, query.length & 0xff), query])

test('queries over TCP are answered in order, however they are cut', async () => {
  using server = await listen({ answer: async (query) => Buffer.from(query).reverse() })
  const client = net.connect(server.port, '127.0.0.1')
  const bytes = Buffer.concat(['abc', 'defg', 'h'].map((text) => framed(Buffer.from(text))))
  for (const byte of bytes) client.write(Uint8Array.of(byte))
  client.end()
  const answers = Buffer.concat(await client.toArray())
  assert.deepEqual(answers, Buffer.concat(['cba', 'gfed', 'h'].map((text) => framed(Buffer.from(text)))))
})

test('a client that asks and asks and takes no answer costs bounded memory, and is given up', async () => {
  let answered = 0
  const answer = Buffer.alloc(60_000)
  using server = await listen({
    async answer() {
      answered += 1
      return answer
    },
  })
  const client = net.connect(server.port, '127.0.0.1')
  client.on('error', () => undefined)
  client.pause()
  client.write(Buffer.concat(Array.from({ length: 20_000 }, () => framed(Buffer.from('question')))))
  const gone = once(client, 'close')
  client.once('connect', () => client.setTimeout(1000, () => undefined))
  // The kernel's buffers take some; the rest is never asked for.
  await new Promise((resolve) => client.once('timeout', resolve))
  assert.ok(answered > 0 && answered < 500, `${answered} answers`)
  client.destroy()
  await gone
})

test('a client over TCP that asks nothing is let go after five seconds', { timeout: 30_000 }, async () => {
  using server = await listen({ answer: async (query) => Buffer.from(query) })
  const client = net.connect(server.port, '127.0.0.1')
  const answered = once(client, 'data')
  client.write(framed(Buffer.from('question')))
  await answered
  const startedAt = performance.now()
  await once(client, 'close')
  const idleMs = performance.now() - startedAt
  assert.ok(idleMs > 4000 && idleMs < 15_000, `${idleMs}`)
})
