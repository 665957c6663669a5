import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { makeCa, makeLeaf, type TestCa } from '../../test/support/ca.ts'
import { presentedChain } from './presented-chain.ts'

const server = await makeCa({ name: 'server' })
const serving = await makeLeaf(server, { uris: [], dns: ['localhost'] })

/** The chain that a server sees of a client that sends this, as fingerprints. */
async function seenOf(client: { readonly key?: string; readonly cert?: string }): Promise<readonly string[]> {
  const accepted = Promise.withResolvers<TLSSocket>()
  const options = { key: serving.key, cert: serving.pem, requestCert: true, rejectUnauthorized: false }
  const listener = createServer(options, accepted.resolve).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const socket = connect({ port, host: '127.0.0.1', ca: server.pem, servername: 'localhost', ...client })
  try {
    return presentedChain(await accepted.promise).map(({ fingerprint256 }) => fingerprint256)
  } finally {
    socket.destroy()
    ;(await accepted.promise).destroy()
    listener.close()
    await once(listener, 'close')
  }
}

const fingerprint = ({ pem }: { readonly pem: string }): string => new X509Certificate(pem).fingerprint256

async function leafOf(authority: TestCa) {
  return makeLeaf(authority, { uris: ['spiffe://a.example/ns/app/sa/web'] })
}

describe('the certificates that a client presents', () => {
  test('are told leaf first, and one that issued itself is told once', async () => {
    const root = await makeCa({ name: 'root' })
    const middle = await makeCa({ name: 'middle', issuer: root })
    const leaf = await leafOf(middle)
    const cert = leaf.pem + middle.pem + root.pem
    assert.deepEqual(await seenOf({ key: leaf.key, cert }), [leaf, middle, root].map(fingerprint))
    assert.deepEqual(await seenOf({ key: leaf.key, cert: leaf.pem }), [fingerprint(leaf)])
  })

  test('are none when there are none', async () => {
    assert.deepEqual(await seenOf({}), [])
  })

  test('are told without those that issued none of the others', async () => {
    const root = await makeCa({ name: 'root' })
    const leaf = await leafOf(root)
    const cert = leaf.pem + root.pem + (await makeCa({ name: 'other' })).pem
    assert.deepEqual(await seenOf({ key: leaf.key, cert }), [leaf, root].map(fingerprint))
  })

  test('are looked at up to sixteen', async () => {
    let lowest = await makeCa({ name: '0' })
    const sent = [lowest]
    while (sent.length < 20) {
      lowest = await makeCa({ name: String(sent.length), issuer: lowest })
      sent.unshift(lowest)
    }
    const leaf = await leafOf(lowest)
    const chain = [leaf, ...sent]
    assert.deepEqual(
      await seenOf({ key: leaf.key, cert: chain.map(({ pem }) => pem).join('') }),
      chain.slice(0, 16).map(fingerprint),
    )
  })
})
