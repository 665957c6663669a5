import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { keyPem, makeCa, makeCrl, makeKeys, makeLeaf, x509 } from '../../../test/support/ca.ts'
import { isSameBundle, mergeBundles } from '../../util/index.ts'
import { encode, encodeOid, tags } from './der.ts'
import {
  buildSpiffe,
  certificateFromAnswer,
  covers,
  createCertificateRequest,
  parseRevocationLists,
  parseSpiffe,
  revokedIn,
  spiffeOf,
  subjectAltNamesOf,
} from './index.ts'

const identity = 'spiffe://cluster.local/ns/shop/sa/web'

test('the request is what openssl expects of one', async () => {
  const { csrPem, privateKeyPem } = await createCertificateRequest(identity)
  const options = { input: csrPem, stdio: ['pipe', 'pipe', 'pipe'] as ['pipe', 'pipe', 'pipe'] }
  const text = execFileSync('openssl', ['req', '-text', '-noout', '-verify'], options).toString()
  assert.match(text, /X509v3 Subject Alternative Name: critical\s+URI:spiffe:\/\/cluster.local\/ns\/shop\/sa\/web/)
  assert.match(text, /ASN1 OID: prime256v1/)
  assert.match(privateKeyPem, /^-----BEGIN PRIVATE KEY-----/)
})

test('an answer is taken apart and checked', async () => {
  const [root, second] = await Promise.all([makeCa({ name: 'root' }), makeCa({ name: 'second' })])
  const intermediate = await makeCa({ name: 'int', issuer: root })
  const leaf = await makeLeaf(intermediate, [identity])
  const base = { identity, privateKeyPem: leaf.key, checkIdentity: true }
  const warnings: string[] = []
  const broken = root.pem.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA')
  const certificate = certificateFromAnswer({
    ...base,
    chain: [leaf.pem, intermediate.pem, root.pem + broken + second.pem],
    warn: (message) => void warnings.push(message),
  })
  assert.equal(certificate.intermediates.length, 1)
  assert.ok(isSameBundle(certificate.roots.join(''), root.pem + second.pem))
  assert.equal(warnings.length, 1)
  const refuse = (chain: readonly string[], message: RegExp, more: object = {}) =>
    assert.throws(() => certificateFromAnswer({ ...base, chain, ...more }), { code: 'CA_ANSWER', message })
  refuse([], /^chain returned from CA is empty for: spiffe:/)
  refuse([leaf.pem], /^invalid root certificate: no root certificate present$/)
  refuse([leaf.pem, ''], /no root certificate present/)
  refuse(['junk', root.pem], /no certificate in the first entry/)
  refuse([leaf.pem, root.pem], /^did not find expected SAN: spiffe:\/\/x/, { identity: 'spiffe://x/ns/a/sa/b' })
  refuse([leaf.pem, root.pem], /not for the key that was sent/, {
    privateKeyPem: await keyPem(await makeKeys('ecP256')),
  })
  const twice = await makeLeaf(intermediate, [identity, 'spiffe://cluster.local/ns/a/sa/b'])
  refuse([twice.pem, root.pem], /did not find expected SAN/, { privateKeyPem: twice.key })
})

test('an identity has five parts', () => {
  assert.deepEqual(parseSpiffe('spiffe://td/ns/a/sa/b'), { trustDomain: 'td', namespace: 'a', serviceAccount: 'b' })
  for (const text of ['td/ns/a/sa/b', 'spiffe://td/ns/a/sa', 'spiffe://td/x/a/sa/b', 'spiffe://td/ns/a/sa/b/', '']) {
    assert.throws(() => parseSpiffe(text), { code: 'INVALID_SPIFFE_ID' })
  }
  for (const text of [
    'spiffe://td/ns//sa/b',
    'spiffe:///ns/a/sa/b',
    'spiffe://td/ns/a/sa/b?c',
    'spiffe://td/ns/a,b/sa/c',
  ]) {
    assert.equal(spiffeOf(text), undefined)
  }
  assert.equal(buildSpiffe({ trustDomain: 'a@b.c', namespace: 'n', serviceAccount: 's' }), 'spiffe://a.b.c/ns/n/sa/s')
  assert.throws(() => buildSpiffe({ trustDomain: 't', namespace: 'n/sa/x', serviceAccount: 's' }), {
    code: 'INVALID_SPIFFE_ID',
  })
})

test('a name with separators in it stays one name', async () => {
  const ca = await makeCa({ name: 'root' })
  const names = ['spiffe://a, URI:spiffe://b', 'spiffe://c']
  const leaf = new X509Certificate((await makeLeaf(ca, names)).pem)
  assert.deepEqual(
    subjectAltNamesOf(leaf)?.map(({ value }) => value),
    names,
  )
})

test('whatever a name holds, it is no other name', async () => {
  const root = await makeCa({ name: 'root' })
  const kinds = { 134: 'uri', 130: 'dns', 129: 'email' } as const
  const tag = fc.constantFrom(134, 130, 129)
  const unit = fc.constantFrom('"', '\\', ', ', 'URI:', 'DNS:', identity, 'a', '\0', '\n', '\x7f', '\xe9', '\xff')
  const property = fc.asyncProperty(
    fc.array(fc.tuple(tag, fc.string({ unit, maxLength: 5 })), { minLength: 1, maxLength: 4 }),
    fc.boolean(),
    async (names, hasOther) => {
      const fields = names.map(([kind, value]) => encode(kind, Buffer.from(value, 'latin1')))
      const text = encode(0x0c, Buffer.from(`x", URI:${identity}`))
      const other = encode(0xa0, encodeOid('1.3.6.1.4.1.311.20.2.3'), encode(0xa0, text))
      const value = encode(tags.sequence, ...fields, ...(hasOther ? [other] : []))
      const leaf = await x509.X509CertificateGenerator.create({
        issuer: root.certificate.subjectName,
        publicKey: root.keys.publicKey,
        signingKey: root.keys.privateKey,
        signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
        extensions: [new x509.Extension('2.5.29.17', true, value)],
      })
      const read = subjectAltNamesOf(new X509Certificate(Buffer.from(leaf.rawData))) ?? []
      assert.deepEqual(
        read.filter(({ kind }) => kind !== 'other'),
        names.map(([kind, text]) => ({ kind: kinds[kind as keyof typeof kinds], value: text })),
      )
    },
  )
  await fc.assert(property, { numRuns: 300 })
})

test('bundles are sets of certificates', async () => {
  const [a, b] = await Promise.all([makeCa({ name: 'a' }), makeCa({ name: 'b' })])
  assert.ok(isSameBundle(a.pem + b.pem, `text\n${b.pem}${a.pem}${a.pem}`))
  assert.ok(!isSameBundle('', ''))
  assert.equal(mergeBundles(a.pem, b.pem + a.pem).match(/BEGIN/g)?.length, 2)
})

test('a certificate is revoked by a list that its own issuer signed, and by no other', async () => {
  for (const kind of ['ecP256', 'ecP384', 'rsa2048', 'ed25519'] as const) {
    const root = await makeCa({ name: 'root', kind })
    const impostor = await makeCa({ name: 'root', kind })
    const intermediate = await makeCa({ name: 'int', issuer: root, kind })
    const chain = [(await makeLeaf(intermediate, [identity])).pem, intermediate.pem].map(
      (pem) => new X509Certificate(pem),
    )
    const roots = [new X509Certificate(root.pem)]
    const [leafSerial = '', intermediateSerial = ''] = chain.map(({ serialNumber }) => serialNumber)
    const revoked = async (pem: string) => revokedIn(chain, roots, parseRevocationLists(Buffer.from(pem)))?.serialNumber
    assert.equal(await revoked(await makeCrl(intermediate, [leafSerial])), leafSerial)
    assert.equal(await revoked(await makeCrl(root, [intermediateSerial])), intermediateSerial)
    assert.equal(await revoked((await makeCrl(root, [])) + (await makeCrl(intermediate, [leafSerial]))), leafSerial)
    assert.equal(await revoked(await makeCrl(root, [leafSerial])), undefined)
    assert.equal(await revoked(await makeCrl(impostor, [intermediateSerial])), undefined)
    const leafOnly = async (pem: string, known: readonly X509Certificate[]) =>
      revokedIn(chain.slice(0, 1), known, parseRevocationLists(Buffer.from(pem)))?.serialNumber
    assert.equal(await leafOnly(await makeCrl(intermediate, [leafSerial]), []), leafSerial)
    assert.equal(
      await leafOnly(await makeCrl(root, [intermediateSerial]), [...chain.slice(1), ...roots]),
      intermediateSerial,
    )
    assert.equal(covers(parseRevocationLists(Buffer.from(await makeCrl(intermediate, []))), chain, roots), false)
  }
})

test('what is no revocation list is refused, an empty file is none', () => {
  assert.deepEqual(parseRevocationLists(Buffer.from(' \n')), [])
  for (const text of ['junk', '-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n', '0\x03abc']) {
    assert.throws(() => parseRevocationLists(Buffer.from(text)), { code: 'INVALID_CRL' })
  }
})
