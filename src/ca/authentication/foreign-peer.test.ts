import assert from 'node:assert/strict'
import { KeyObject, sign, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { makeKeys, type TestKey, x509 } from '../../../test/support/ca.ts'
import { AuthenticationError } from './authenticator.ts'
import { verifyForeignPeer, withForeignPeer } from './foreign-peer.ts'

interface Issued {
  readonly certificate: X509Certificate
  readonly parsed: x509.X509Certificate
  readonly keys: Awaited<ReturnType<typeof makeKeys>>
}

interface Wish {
  readonly name?: string
  readonly issuer?: Issued
  readonly isCa?: boolean
  readonly pathLength?: number
  readonly uris?: readonly string[]
  readonly purposes?: readonly string[]
  readonly usages?: number
  readonly notBefore?: Date
  readonly notAfter?: Date
  readonly extensions?: readonly x509.Extension[]
  readonly key?: TestKey
}

const hourMs = 3_600_000
const { keyCertSign, digitalSignature } = x509.KeyUsageFlags

/** Signed by the issuer, whatever it may; by itself without one. */
async function issue(wish: Wish): Promise<Issued> {
  const { name = '', issuer, uris, purposes, isCa = false } = wish
  const keys = await makeKeys(wish.key ?? 'ecP256')
  const signingKey = (issuer?.keys ?? keys).privateKey
  const subject = new x509.Name(name === '' ? [] : [{ O: [{ utf8String: name }] }])
  const parsed = await x509.X509CertificateGenerator.create({
    subject,
    issuer: issuer?.parsed.subjectName ?? subject,
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: { name: signingKey.algorithm.name, hash: 'SHA-256' },
    notBefore: wish.notBefore ?? new Date(Date.now() - hourMs),
    notAfter: wish.notAfter ?? new Date(Date.now() + hourMs),
    extensions: [
      new x509.BasicConstraintsExtension(isCa, wish.pathLength, true),
      new x509.KeyUsagesExtension(wish.usages ?? (isCa ? keyCertSign : digitalSignature), true),
      ...(purposes === undefined ? [] : [new x509.ExtendedKeyUsageExtension([...purposes])]),
      ...(uris === undefined
        ? []
        : [new x509.SubjectAlternativeNameExtension(uris.map((value) => ({ type: 'url', value })))]),
      ...(wish.extensions ?? []),
    ],
  })
  return { certificate: new X509Certificate(Buffer.from(parsed.rawData)), parsed, keys }
}

const ca = (name: string, wish: Wish = {}) => issue({ name, isCa: true, ...wish })
const leafOf = (issuer: Issued, uri: string, wish: Wish = {}) => issue({ issuer, uris: [uri], ...wish })

const rootA = await ca('root of a')
const rootB = await ca('root of b')
const middleB = await ca('middle of b', { issuer: rootB })
const inA = 'spiffe://a.example/ns/app/sa/web'
const inB = 'spiffe://b.example/ns/app/sa/web'

const roots: Readonly<Record<string, readonly Issued[]>> = { 'a.example': [rootA], 'b.example': [rootB] }
const rootsOf = (domain: string) => (roots[domain] ?? []).map(({ certificate }) => certificate)
const verify = (...chain: readonly Issued[]) =>
  verifyForeignPeer(
    chain.map(({ certificate }) => certificate),
    rootsOf,
  )

function refuses(why: RegExp, ...chain: readonly Issued[]): void {
  assert.throws(
    () => verify(...chain),
    (error) => error instanceof AuthenticationError && why.test(error.message),
    `not: ${why}`,
  )
}

test('a chain that leads to a root of the domain that its leaf names', async () => {
  const direct = await leafOf(rootA, inA)
  assert.deepEqual(
    verify(direct).map(({ subject }) => subject),
    [direct, rootA].map(({ certificate }) => certificate.subject),
  )
  const leaf = await leafOf(middleB, inB, { purposes: [x509.ExtendedKeyUsage.clientAuth] })
  assert.equal(verify(leaf, middleB).length, 3)
  assert.equal(verify(leaf, rootA, middleB, rootB).length, 3, 'whatever else is sent along')
})

test('the root of one domain vouches for no identity of another', async () => {
  const lie = /does not lead to a root of trust domain b\.example/
  refuses(lie, await leafOf(rootA, inB))
  refuses(lie, await leafOf(rootA, inB), rootA)
  refuses(lie, await leafOf(rootA, inB), rootA, rootB)
  const middleA = await ca('middle of a', { issuer: rootA })
  refuses(lie, await leafOf(middleA, inB), middleA)
  const namesake = await ca('root of b')
  refuses(lie, await leafOf(namesake, inB), namesake)
  refuses(lie, await leafOf(rootA, inB), await leafOf(rootB, inB), rootB)
})

test('a domain that nobody vouches for', async () => {
  refuses(/no roots are known for trust domain c\.example/, await leafOf(rootA, 'spiffe://c.example/ns/app/sa/web'))
  refuses(/no certificate is presented/)
})

test('a certificate that does not name one workload', async () => {
  const nameless = /does not name one workload/
  refuses(nameless, await issue({ issuer: rootA }))
  refuses(nameless, await issue({ issuer: rootA, uris: [inA, inB] }))
  refuses(nameless, await leafOf(rootA, 'spiffe://a.example/ns/app'))
  refuses(nameless, await leafOf(rootA, 'https://a.example/ns/app/sa/web'))
})

test('an authority is no client, and a client no authority', async () => {
  refuses(/of the client is an authority/, await ca('x', { issuer: rootA, uris: [inA] }))
  const leaf = await leafOf(rootA, inA, { name: 'a client' })
  refuses(/does not lead to a root/, await leafOf(leaf, inA), leaf)
  const able = await leafOf(rootA, inA, { name: 'a client that may sign', usages: keyCertSign | digitalSignature })
  refuses(/is no authority/, await leafOf(able, inA), able)
  const unable = await ca('may not sign', { issuer: rootA, usages: digitalSignature })
  refuses(/does not lead to a root/, await leafOf(unable, inA), unable)
})

test('a chain of which a part is missing', async () => {
  refuses(/does not lead to a root/, await leafOf(middleB, inB))
})

test('what is out of its time, be it client, authority or root', async () => {
  const past = { notBefore: new Date(Date.now() - 2 * hourMs), notAfter: new Date(Date.now() - hourMs) }
  const future = { notBefore: new Date(Date.now() + hourMs / 2) }
  refuses(/of the client has expired/, await leafOf(rootA, inA, past))
  refuses(/of the client is not valid yet/, await leafOf(rootA, inA, future))
  const old = await ca('old', { issuer: rootA, ...past })
  refuses(/the authority O=old has expired/, await leafOf(old, inA), old)
  const leaf = await leafOf(rootA, inA)
  assert.throws(() => verifyForeignPeer([leaf.certificate], rootsOf, new Date(Date.now() + 2 * hourMs)), /has expired/)
})

test('a renewed root beside its expired one', async () => {
  const leaf = await leafOf(rootA, inA)
  const expired = await ca('root of a', { notAfter: new Date(Date.now() - 1) })
  const chain = verifyForeignPeer([leaf.certificate], () => [expired.certificate, rootA.certificate])
  assert.equal(chain.at(-1)?.fingerprint256, rootA.certificate.fingerprint256)
})

test('what is for something else', async () => {
  refuses(/is not for clients/, await leafOf(rootA, inA, { purposes: [x509.ExtendedKeyUsage.serverAuth] }))
  refuses(/is not for signatures/, await leafOf(rootA, inA, { usages: x509.KeyUsageFlags.keyEncipherment }))
  const servers = await ca('servers', { issuer: rootA, purposes: [x509.ExtendedKeyUsage.serverAuth] })
  refuses(/the authority O=servers is not for clients/, await leafOf(servers, inA), servers)
})

test('signatures over sound hashes, and no others', async () => {
  const root = await ca('an RSA root', { key: 'rsa2048' })
  const leaf = await leafOf(root, inA)
  const ask = (digest: keyof typeof rsaSignatures) =>
    verifyForeignPeer([signedOver(digest, leaf.certificate, root)], () => [root.certificate])
  for (const digest of ['sha256', 'sha384', 'sha512'] as const) assert.equal(ask(digest).length, 2, digest)
  for (const digest of ['md5', 'sha1', 'sha224'] as const)
    assert.throws(() => ask(digest), /weak or unknown hash/, digest)
})

/** Last bytes of the identifiers of RSA signatures (RFC 8017, appendix A.2.4). */
const rsaSignatures = { md5: 0x04, sha1: 0x05, sha256: 0x0b, sha384: 0x0c, sha512: 0x0d, sha224: 0x0e } as const

/** The certificate, which an RSA key has signed over SHA-256, signed again over another hash. */
function signedOver(digest: keyof typeof rsaSignatures, { raw }: X509Certificate, { keys }: Issued): X509Certificate {
  const der = Buffer.from(raw)
  const identifier = Buffer.from('2a864886f70d01010b', 'hex')
  for (let at = der.indexOf(identifier); at !== -1; at = der.indexOf(identifier, at + 1)) {
    der[at + identifier.length - 1] = rsaSignatures[digest]
  }
  const toBeSigned = der.subarray(4, 8 + der.readUInt16BE(6))
  const signature = sign(digest, toBeSigned, KeyObject.from(keys.privateKey))
  return new X509Certificate(Buffer.concat([der.subarray(0, -signature.length), signature]))
}

test('constraints of authorities hold, and those that are not judged refuse', async () => {
  const last = await ca('last', { issuer: rootA, pathLength: 0 })
  assert.equal(verify(await leafOf(last, inA), last).length, 3)
  const below = await ca('below', { issuer: last })
  refuses(/the authority O=last may not have so many/, await leafOf(below, inA), below, last)
  const names = new x509.Extension('2.5.29.30', false, new Uint8Array([0x30, 0]))
  const narrow = await ca('narrow', { issuer: rootA, extensions: [names] })
  refuses(/has name constraints/, await leafOf(narrow, inA), narrow)
  const odd = new x509.Extension('1.2.3.4', true, new Uint8Array([5, 0]))
  refuses(/critical extension that is not understood: 1\.2\.3\.4/, await leafOf(rootA, inA, { extensions: [odd] }))
})

test('chains without end', async () => {
  const middles: Issued[] = []
  for (let at = 0; at < 10; at += 1) middles.push(await ca(`m${at}`, { issuer: middles.at(-1) ?? rootA }))
  const deepest = middles.at(-1) ?? rootA
  refuses(/does not lead to a root/, await leafOf(deepest, inA), ...middles)
})

test('certificates of this mesh are left to the TLS layer, and refusals to other proofs', async () => {
  const request = { peerAddress: '10.0.0.1:1', header: () => ['Bearer x'] }
  const ask = (leaf: Issued, own: readonly string[]) => withForeignPeer(request, [leaf.certificate], own, rootsOf)
  const leaf = await leafOf(rootA, inA)
  assert.equal(ask(leaf, ['a.example']), request)
  assert.equal(withForeignPeer(request, [], [], rootsOf), request)
  const known = ask(leaf, ['b.example']).peerAuthentication
  assert.ok(known?.kind === 'tls' && known.verifiedChains[0]?.[0] === leaf.certificate)
  const lie = ask(await leafOf(rootA, inB), ['cluster.local'])
  assert.ok(lie.peerAuthentication?.kind === 'tls')
  assert.deepEqual(lie.peerAuthentication.verifiedChains, [])
  assert.match(lie.peerAuthentication.unverified ?? '', /does not lead/)
  assert.deepEqual(lie.header('authorization'), ['Bearer x'])
})
