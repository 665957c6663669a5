import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { createSecureContext } from 'node:tls'
import { makeCa, makeRequest, x509 } from '../../../test/support/ca.ts'
import { createAuthority } from './authority.ts'
import { signingMaterial } from './material.ts'

const identity = 'spiffe://cluster.local/ns/shop/sa/web'

async function authority(options: { kind?: 'rsa2048' | 'ecP256' | 'ecP384' | 'ed25519'; notAfter?: Date } = {}) {
  const root = await makeCa({
    name: 'root',
    kind: options.kind ?? 'ecP256',
    ...(options.notAfter ? { notAfter: options.notAfter } : {}),
  })
  const material = signingMaterial({ certificate: root.pem, key: root.key, roots: root.pem, chain: '' })
  return { root, authority: createAuthority({ material, defaultTtlSeconds: 3600, maxTtlSeconds: 7200 }) }
}

const kinds = ['rsa2048', 'ecP256', 'ecP384', 'ed25519'] as const
for (const caKind of kinds) {
  test(`a CA with a key ${caKind} certifies keys of every kind`, async () => {
    const { root, authority: ca } = await authority({ kind: caKind })
    for (const key of kinds) {
      const csrPem = await makeRequest({ key, uris: ['spiffe://evil/ns/a/sa/b'] })
      const chain = await ca.sign({ csrPem, identities: [identity], validitySeconds: 600 })
      assert.equal(chain.length, 2)
      const leaf = new X509Certificate(chain[0] ?? '')
      assert.ok(leaf.verify(new X509Certificate(root.pem).publicKey))
      assert.ok(leaf.checkIssued(new X509Certificate(root.pem)))
      assert.equal(leaf.subjectAltName, `URI:${identity}`)
      assert.equal(leaf.subject ?? '', '')
      assert.equal(leaf.ca, false)
      assert.equal(leaf.validToDate.getTime() - leaf.validFromDate.getTime(), 720_000)
    }
  })
}

test('the names of a certificate are exactly the identities, of their own kinds', async () => {
  const { authority: ca } = await authority()
  const csrPem = await makeRequest({ key: 'ecP256', dns: ['other.example'], subject: { CN: 'asked', O: 'evil' } })
  const [leafPem = ''] = await ca.sign({
    csrPem,
    identities: ['example.com', identity, '10.0.0.1', '2001:db8::1'],
    validitySeconds: 0,
  })
  const leaf = new x509.X509Certificate(leafPem)
  const san = leaf.getExtension(x509.SubjectAlternativeNameExtension)
  assert.equal(san?.critical, true)
  assert.deepEqual(
    san?.names.items.map(({ type, value }) => [type, value]),
    [
      ['dns', 'example.com'],
      ['url', identity],
      ['ip', '10.0.0.1'],
      ['ip', '2001:db8::1'],
    ],
  )
  assert.equal(leaf.subject, 'CN=example.com')
  assert.equal(leaf.notAfter.getTime() - leaf.notBefore.getTime(), 3_720_000)
})

test('a common name longer than 64 characters is left out', async () => {
  const { authority: ca } = await authority()
  const csrPem = await makeRequest({ key: 'ecP256', subject: { CN: 'asked' } })
  const long = `spiffe://cluster.local/ns/${'n'.repeat(60)}/sa/a`
  const [leafPem = ''] = await ca.sign({ csrPem, identities: [long], validitySeconds: 0 })
  assert.equal(new x509.X509Certificate(leafPem).subject, '')
})

test('requests that are refused', async () => {
  const { authority: ca } = await authority()
  const sign = (csrPem: string, identities = [identity], validitySeconds = 0) =>
    ca.sign({ csrPem, identities, validitySeconds })
  const good = await makeRequest({ key: 'ecP256' })
  await assert.rejects(sign('dumb CSR'), { code: 'CSR_ERROR' })
  await assert.rejects(sign(''), { code: 'CSR_ERROR' })
  await assert.rejects(sign(good + good), { code: 'CSR_ERROR' })
  await assert.rejects(sign(good + ' '.repeat(70_000)), { code: 'CSR_ERROR' })
  await assert.rejects(sign(good.replace(/\n.{10}/, '\nAAAAAAAAAA')), { code: 'CSR_ERROR' })
  await assert.rejects(sign(await makeRequest({ key: 'rsa2048', isBroken: true })), { code: 'CSR_ERROR' })
  await assert.rejects(sign(await makeRequest({ key: 'ecP256', isBroken: true })), { code: 'CSR_ERROR' })
  await assert.rejects(sign(good, []), { code: 'CERT_GEN_ERROR' })
  await assert.rejects(sign(good, ['a,DNS:b']), { code: 'CERT_GEN_ERROR' })
  await assert.rejects(sign(good, ['caf\u00e9']), { code: 'CERT_GEN_ERROR' })
  await assert.rejects(sign(good, [identity], 7201), {
    code: 'TTL_ERROR',
    message: 'requested TTL 2h0m1s is greater than the max allowed TTL 2h0m0s',
  })
})

test('a leaf does not outlive its signer, and an expired signer signs nothing', async () => {
  const notAfter = new Date(Math.floor(Date.now() / 1000) * 1000 + 60_000)
  const { authority: ca } = await authority({ notAfter })
  const csrPem = await makeRequest({ key: 'ecP256' })
  const [leafPem = ''] = await ca.sign({ csrPem, identities: [identity], validitySeconds: 3600 })
  assert.equal(new X509Certificate(leafPem).validToDate.getTime(), notAfter.getTime())
  const { authority: expired } = await authority({ notAfter: new Date(Date.now() - 1000) })
  await assert.rejects(expired.sign({ csrPem, identities: [identity], validitySeconds: 60 }), {
    code: 'CERT_GEN_ERROR',
    message: 'signing certificate has expired',
  })
})

test('replaced material is in force at once and subscribers are told', async () => {
  const { authority: ca } = await authority()
  const other = await makeCa({ name: 'other' })
  let calls = 0
  const unsubscribe = ca.subscribe(() => {
    calls += 1
  })
  const next = signingMaterial({ certificate: other.pem, key: other.key, roots: other.pem, chain: '' })
  ca.replace(next)
  unsubscribe()
  ca.replace(next)
  assert.equal(calls, 1)
  assert.equal(ca.rootBundle, other.pem)
})

test('work on the material is done in turn, also behind work that failed', async () => {
  const { authority: ca } = await authority()
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const done: string[] = []
  const turns = [
    ca.inTurn(() => first.promise.then(() => done.push('first'))),
    ca.inTurn(() => second.promise.then(() => done.push('second'))),
    ca.inTurn(async () => done.push('third')),
  ]
  second.reject(new Error('refused'))
  first.resolve()
  const outcomes = await Promise.allSettled(turns)
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  assert.deepEqual(done, ['first', 'third'])
})

test('a serving certificate is made of the CA kind and loads', async () => {
  const { authority: ca } = await authority({ kind: 'rsa2048' })
  const serving = await ca.issueServingCertificate(['istiod.istio-system.svc'], 10 * 365 * 86_400)
  createSecureContext({ key: serving.privateKey, cert: serving.chain, ca: serving.roots })
  const leaf = new X509Certificate(serving.chain)
  assert.equal(leaf.publicKey.asymmetricKeyType, 'rsa')
  assert.equal(leaf.checkHost('istiod.istio-system.svc', { subject: 'never' }), 'istiod.istio-system.svc')
})
