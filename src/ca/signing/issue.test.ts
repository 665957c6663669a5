import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { makeCa, makeRequest, x509 } from '../../../test/support/ca.ts'
import { memorySecretStore } from '../../../test/support/secret-store.ts'
import { createAuthority } from './authority.ts'
import { signingMaterial } from './material.ts'
import { loadOrCreateSelfSigned } from './self-signed.ts'

const { KeyUsageFlags, ExtendedKeyUsage } = x509

async function world() {
  const root = await makeCa({ name: 'root' })
  const material = signingMaterial({ certificate: root.pem, key: root.key, roots: root.pem, chain: '' })
  const authority = createAuthority({ material, defaultTtlSeconds: 600, maxTtlSeconds: 900 })
  const csrPem = await makeRequest({ key: 'ecP256' })
  return async (validitySeconds = 0) => {
    const [leaf = ''] = await authority.sign({ csrPem, identities: ['spiffe://td/ns/a/sa/b'], validitySeconds })
    return new x509.X509Certificate(leaf)
  }
}

test('a leaf is for servers and clients, and is no authority', async () => {
  const leaf = await (await world())()
  const constraints = leaf.getExtension(x509.BasicConstraintsExtension)
  assert.deepEqual([constraints?.ca, constraints?.critical], [false, true])
  const usages = leaf.getExtension(x509.KeyUsagesExtension)?.usages
  assert.equal(usages, KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment)
  const purposes = leaf.getExtension(x509.ExtendedKeyUsageExtension)?.usages
  assert.deepEqual([...(purposes ?? [])], [ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth])
  assert.equal(leaf.getExtension(x509.SubjectAlternativeNameExtension)?.critical, true)
})

test('serial numbers are of 128 bits, and each its own', async () => {
  const sign = await world()
  const serials = await Promise.all(Array.from({ length: 50 }, async () => (await sign()).serialNumber))
  assert.equal(new Set(serials).size, 50)
  for (const serial of serials) assert.match(serial, /^[0-7][0-9a-f]{31}$/)
})

test('nothing, or less, asks for the default lifetime', async () => {
  const sign = await world()
  const lifetimeOf = async (asked: number) => {
    const { notBefore, notAfter } = await sign(asked)
    return (notAfter.getTime() - notBefore.getTime()) / 1000 - 120
  }
  for (const asked of [0, -1, -(2 ** 63)]) assert.equal(await lifetimeOf(asked), 600)
  for (const asked of [1, 900]) assert.equal(await lifetimeOf(asked), asked)
  await assert.rejects(sign(901), { code: 'TTL_ERROR' })
  await assert.rejects(sign(2 ** 63), { code: 'TTL_ERROR' })
})

for (const useCacerts of [false, true]) {
  test(`the root of our own, as its Secret holds it${useCacerts ? ' under the name cacerts' : ''}`, async () => {
    const store = memorySecretStore()
    const started = Math.floor(Date.now() / 1000) * 1000
    // Beyond the year 2049 dates are written in another form.
    const ttlSeconds = 100 * 365 * 86_400
    await loadOrCreateSelfSigned(store, { organization: 'td', ttlSeconds, useCacerts })
    const [[name, secret] = []] = store.secrets
    assert.equal(name, useCacerts ? 'cacerts' : 'istio-ca-secret')
    assert.equal(secret?.type, useCacerts ? 'Opaque' : 'istio.io/ca-root')
    const { 'ca-cert.pem': pem = '', 'ca-key.pem': key, ...others } = secret?.data ?? {}
    assert.ok(key)
    const empty = { 'cert-chain.pem': '', 'key.pem': '' }
    const mark = useCacerts ? { 'istio-generated': '' } : {}
    assert.deepEqual(others, { 'root-cert.pem': pem, ...empty, ...mark })
    const root = new x509.X509Certificate(pem)
    assert.equal(root.subject, 'O=td')
    assert.equal(root.getExtension(x509.BasicConstraintsExtension)?.ca, true)
    assert.equal(root.getExtension(x509.KeyUsagesExtension)?.usages, KeyUsageFlags.keyCertSign)
    const { validFromDate, validToDate } = new X509Certificate(pem)
    assert.ok(validFromDate.getTime() >= started)
    assert.equal(validToDate.getTime() - validFromDate.getTime(), ttlSeconds * 1000)
  })
}
