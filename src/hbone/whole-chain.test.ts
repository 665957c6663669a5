// The chain by which a peer is checked for revocation: all of it, at both ends, whatever else the peer sends.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import { after, test } from 'node:test'
import { makeCa, makeLeaf, type TestCa } from '../../test/support/ca.ts'
import { type PeerCertificate, wholeChainOf } from './peer.ts'
import { acceptTls, connectTls } from './tls.ts'
import type { TlsOptions } from './types.ts'

const root = await makeCa({ name: 'root' })
const [near, far] = [await makeCa({ name: 'near', issuer: root }), await makeCa({ name: 'far', issuer: root })]
const lower = await makeCa({ name: 'lower', issuer: far })

/** What a peer holds of whom this authority has certified, with these authorities sent. */
async function holding(issuer: TestCa, ...sent: readonly TestCa[]) {
  const leaf = await makeLeaf(issuer, { uris: ['spiffe://cluster.local/ns/a/sa/b'] })
  const certificateChain = [leaf, ...sent].map(({ pem }) => pem).join('')
  return { privateKey: leaf.key, certificateChain, roots: root.pem }
}

const cleanups: (() => void)[] = []
after(() => {
  for (const cleanup of cleanups) cleanup()
})

/** The chains that the server and the client saw of each other, by fingerprint; refusals as texts. */
async function meet(
  credentials: Record<'server' | 'client', TlsOptions['credentials']>,
  more: (side: 'server' | 'client') => Partial<TlsOptions> = () => ({}),
) {
  const seen = new Map<string, readonly string[]>()
  const optionsOf = (side: 'server' | 'client'): TlsOptions => ({
    credentials: credentials[side],
    wholeChain: true,
    handshakeTimeoutMs: 5_000,
    checkPeer: ({ chain }: PeerCertificate) => {
      seen.set(
        side,
        chain.map(({ fingerprint256 }) => fingerprint256),
      )
      return undefined
    },
    ...more(side),
  })
  const accepted = Promise.withResolvers<unknown>()
  const listener = net.createServer({ pauseOnConnect: true }, (socket) => {
    acceptTls(socket, optionsOf('server')).then(
      ({ socket: tls }) => {
        cleanups.push(() => tls.destroy())
        accepted.resolve(undefined)
      },
      (error: unknown) => accepted.resolve(error),
    )
  })
  cleanups.push(() => listener.close())
  await once(listener.listen(0, '127.0.0.1'), 'listening')
  const socket = net.connect((listener.address() as net.AddressInfo).port, '127.0.0.1')
  const connected = await connectTls(socket, optionsOf('client')).then(
    ({ socket: tls }) => void cleanups.push(() => tls.destroy()),
    (error: unknown) => error,
  )
  const refused = { accepted: await accepted.promise, connected }
  return { ...refused, server: seen.get('server'), client: seen.get('client') }
}

const fingerprints = (...chain: readonly { readonly pem: string }[]): string[] =>
  chain.map(({ pem }) => new X509Certificate(pem).fingerprint256)

for (const allowTls12 of [false, true]) {
  test(`both ends see it up to the root (${allowTls12 ? 'TLS 1.2 allowed' : 'TLS 1.3'})`, async () => {
    const server = await holding(near, near)
    const client = await holding(lower, lower, far)
    const {
      server: atServer,
      client: atClient,
      accepted,
      connected,
    } = await meet({ server, client }, () => ({ allowTls12 }))
    assert.deepEqual([accepted, connected], [undefined, undefined])
    assert.deepEqual(atServer?.slice(1), fingerprints(lower, far, root))
    assert.deepEqual(atClient?.slice(1), fingerprints(near, root))
  })
}

test('a root that is sent, too, counts once', async () => {
  const server = await holding(near, near, root)
  const client = await holding(far, far, root)
  const { server: atServer, client: atClient } = await meet({ server, client })
  assert.deepEqual(atServer?.slice(1), fingerprints(far, root))
  assert.deepEqual(atClient?.slice(1), fingerprints(near, root))
})

test('who hides its issuer behind another certificate of that name is refused, at either end', async () => {
  // TLS passes over what has expired and finds the true issuer; who only goes by names finds the false one first.
  const past = { notBefore: new Date(Date.now() - 7_200_000), notAfter: new Date(Date.now() - 3_600_000) }
  const decoy = await makeCa({ name: 'far', ...past })
  const good = await holding(near, near)
  const bad = await holding(far, decoy, far)
  const refusal = /chain of the peer cannot be followed to a root/
  const atServer = await meet({ server: good, client: bad })
  assert.match(String(atServer.accepted), refusal)
  assert.equal(atServer.server, undefined)
  const atClient = await meet({ server: bad, client: good })
  assert.match(String(atClient.connected), refusal)
  assert.equal(atClient.client, undefined)
})

test('a chain is followed by signatures to a root that is trusted, or not at all', async () => {
  const leaf = await makeLeaf(far, { uris: ['spiffe://cluster.local/ns/a/sa/b'] })
  const parsed = (...all: readonly { readonly pem: string }[]) => all.map(({ pem }) => new X509Certificate(pem))
  const followed = (...all: readonly { readonly pem: string }[]) =>
    wholeChainOf(parsed(...all), { roots: root.pem })?.map(({ fingerprint256 }) => fingerprint256)
  assert.deepEqual(followed(leaf, far), fingerprints(leaf, far, root))
  assert.deepEqual(followed(leaf, far, root, near), fingerprints(leaf, far, root))
  const twin = await makeCa({ name: 'root' })
  for (const chain of [[], [leaf], [leaf, near], [leaf, far, twin], [leaf, lower, far], [root]]) {
    assert.equal(followed(...chain), undefined)
  }
})

for (const failing of ['server', 'client'] as const) {
  test(`a check of the ${failing} that fails refuses the peer`, async () => {
    const [server, client] = [await holding(near, near), await holding(far, far)]
    const checkPeer = (): never => assert.fail('no judgement')
    const { accepted, connected } = await meet({ server, client }, (side) => (side === failing ? { checkPeer } : {}))
    assert.match(String(failing === 'server' ? accepted : connected), /the peer cannot be judged: no judgement/)
  })
}
