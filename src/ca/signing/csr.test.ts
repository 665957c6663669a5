import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync, type KeyObject, sign, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { makeCa, makeRequest, type TestKey, x509 } from '../../../test/support/ca.ts'
import { pemBlocks, toPem } from '../../util/index.ts'
import { encode, encodeOid, tags } from '../client/der.ts'
import { createAuthority } from './authority.ts'
import { checkCertificateRequest } from './csr.ts'
import { signingMaterial } from './material.ts'

const label = 'CERTIFICATE REQUEST'
const refused = { code: 'CSR_ERROR' }

interface Parts {
  readonly publicKey: Buffer
  readonly privateKey: KeyObject
  readonly digest?: string
  readonly algorithm?: Buffer
  readonly unusedBits?: number
}

const ecdsaSha256 = encode(tags.sequence, encodeOid('1.2.840.10045.4.3.2'))

/** A request made byte by byte. */
function requestOf({
  publicKey,
  privateKey,
  digest = 'sha256',
  algorithm = ecdsaSha256,
  unusedBits = 0,
}: Parts): Buffer {
  const toBeSigned = encode(
    tags.sequence,
    encode(tags.integer, Buffer.from([0])),
    encode(tags.sequence),
    publicKey,
    encode(0xa0),
  )
  const signature = sign(digest, toBeSigned, privateKey)
  return encode(tags.sequence, toBeSigned, algorithm, encode(tags.bitString, Buffer.from([unusedBits]), signature))
}

const ec = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
const spki = ec.publicKey.export({ type: 'spki', format: 'der' })
const plain = { publicKey: spki, privateKey: ec.privateKey }
const check = (der: Buffer) => checkCertificateRequest(toPem(label, der))

for (const key of ['rsa2048', 'rsa3072', 'rsa4096', 'ecP256', 'ecP384', 'ed25519'] satisfies TestKey[]) {
  test(`keys ${key} are certified`, async () => {
    assert.ok(checkCertificateRequest(await makeRequest({ key })).publicKey.length > 0)
  })
}

for (const key of ['rsa1024', 'ecP521'] satisfies TestKey[]) {
  test(`keys ${key} are not certified`, async () => {
    const csr = await makeRequest({ key })
    assert.throws(() => checkCertificateRequest(csr), refused)
  })
}

test('an RSA key that everybody can sign with is not certified', () => {
  const { n = '' } = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' })
  const publicKey = createPublicKey({ key: { kty: 'RSA', n, e: 'AQ' }, format: 'jwk' })
  const der = requestOf({ ...plain, publicKey: publicKey.export({ type: 'spki', format: 'der' }) })
  assert.throws(() => check(der), { ...refused, message: /exponent 1 are not certified/ })
})

test('a request is one structure, and nothing behind it', () => {
  const der = requestOf(plain)
  assert.ok(check(der))
  for (const more of [Buffer.from([0]), Buffer.from([5, 0]), der]) {
    assert.throws(() => check(Buffer.concat([der, more])), refused)
  }
  assert.throws(() => checkCertificateRequest(toPem(label, der).repeat(2)), refused)
  assert.throws(() => checkCertificateRequest(toPem('CERTIFICATE', der)), refused)
  assert.throws(() => checkCertificateRequest(der.toString('latin1')), refused)
  assert.throws(() => checkCertificateRequest(`${toPem(label, der)}${'A'.repeat(1 << 20)}`), refused)
})

test('text around the request does not matter', () => {
  const pem = toPem(label, requestOf(plain))
  for (const text of [`a comment\n${pem}`, `${pem}\nmore`, pem.replaceAll('\n', '\r\n'), pem.trimEnd()]) {
    assert.ok(checkCertificateRequest(text))
  }
})

test('a signature is by the key of the request, with an algorithm that is sound, in one encoding', () => {
  const other = generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey
  const sha1 = encode(tags.sequence, encodeOid('1.2.840.10045.4.1'))
  const rsaSha256 = encode(tags.sequence, encodeOid('1.2.840.113549.1.1.11'), Buffer.from([5, 0]))
  const withParameters = encode(tags.sequence, encodeOid('1.2.840.10045.4.3.2'), encode(tags.integer, Buffer.from([1])))
  for (const changes of [
    { privateKey: other },
    { digest: 'sha1', algorithm: sha1 },
    { algorithm: rsaSha256 },
    { algorithm: withParameters },
    { unusedBits: 4 },
    { digest: 'sha384' },
  ]) {
    assert.throws(() => check(requestOf({ ...plain, ...changes })), refused, JSON.stringify(changes))
  }
})

test('a request may be signed with any of the sound algorithms of its key', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const p384 = generateKeyPairSync('ec', { namedCurve: 'secp384r1' })
  const der = ({ publicKey }: { publicKey: KeyObject }) => publicKey.export({ type: 'spki', format: 'der' })
  const rsaAlgorithm = (arc: number) =>
    encode(tags.sequence, encodeOid(`1.2.840.113549.1.1.${arc}`), Buffer.from([5, 0]))
  const ecAlgorithm = (arc: number) => encode(tags.sequence, encodeOid(`1.2.840.10045.4.3.${arc}`))
  for (const [at, digest] of ['sha256', 'sha384', 'sha512'].entries()) {
    assert.ok(
      check(requestOf({ publicKey: der(rsa), privateKey: rsa.privateKey, digest, algorithm: rsaAlgorithm(11 + at) })),
    )
    for (const pair of [ec, p384]) {
      assert.ok(
        check(requestOf({ publicKey: der(pair), privateKey: pair.privateKey, digest, algorithm: ecAlgorithm(2 + at) })),
      )
    }
  }
})

test('a compressed key is certified in the form that every client reads', async () => {
  const { x = '', y = '' } = ec.publicKey.export({ format: 'jwk' })
  const isOdd = ((Buffer.from(y, 'base64url').at(-1) ?? 0) & 1) === 1
  const point = Buffer.concat([Buffer.from([isOdd ? 3 : 2]), Buffer.from(x, 'base64url')])
  const compressed = encode(
    tags.sequence,
    encode(tags.sequence, encodeOid('1.2.840.10045.2.1'), encodeOid('1.2.840.10045.3.1.7')),
    encode(tags.bitString, Buffer.from([0]), point),
  )
  assert.deepEqual(Buffer.from(check(requestOf({ ...plain, publicKey: compressed })).publicKey), spki)
})

test('what a request asks for is not what the certificate says', async () => {
  const root = await makeCa({ name: 'root' })
  const material = signingMaterial({ certificate: root.pem, key: root.key, roots: root.pem, chain: '' })
  const authority = createAuthority({ material, defaultTtlSeconds: 60, maxTtlSeconds: 60 })
  const csrPem = await makeRequest({
    key: 'ecP256',
    uris: ['spiffe://td/ns/kube-system/sa/admin'],
    dns: ['istiod.istio-system.svc'],
    ips: ['10.0.0.1'],
    subject: { O: 'masters', OU: 'x' },
    extraExtensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ],
  })
  const [leaf = ''] = await authority.sign({ csrPem, identities: ['spiffe://td/ns/a/sa/b'], validitySeconds: 0 })
  const certificate = new X509Certificate(leaf)
  assert.equal(certificate.subjectAltName, 'URI:spiffe://td/ns/a/sa/b')
  assert.equal(certificate.ca, false)
  assert.equal(certificate.subject, undefined)
  const usages = new x509.X509Certificate(leaf).getExtension(x509.KeyUsagesExtension)?.usages
  assert.equal(usages, x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment)
  assert.equal(pemBlocks(leaf).length, 1)
})
