import assert from 'node:assert/strict'
import { test } from 'node:test'
import { certify, makeCa, makeKeys, makeLeaf, makeRequest, signLeaf, x509 } from '../../../test/support/ca.ts'
import { encode, tags } from '../client/der.ts'
import { createRegistrationAuthority, type SignInCluster } from './registration-authority.ts'
import { chainWithRoot } from './root-selection.ts'
import { validateRequestForSigner } from './validate-csr.ts'

const identity = 'spiffe://cluster.local/ns/a/sa/b'
const other = 'spiffe://cluster.local/ns/a/sa/c'

async function world() {
  const root = await makeCa({ name: 'root' })
  const intermediate = await makeCa({ name: 'int', issuer: root })
  const stranger = await makeLeaf(intermediate, [identity])
  const asked: Parameters<SignInCluster>[0][] = []
  const authority = createRegistrationAuthority({
    certSignerDomain: 'signers.example',
    defaultSigner: 'example.com/default',
    defaultTtlSeconds: 3600,
    maxTtlSeconds: 7200,
    rootsOf: (signerName) => (signerName === 'example.com/default' ? root.pem : ''),
    signInCluster: async (request) => {
      asked.push(request)
      const leaf = await certify(intermediate, request.csrPem)
      switch (request.signerName) {
        case 'signers.example/broken':
          throw new Error('denied')
        case 'signers.example/leaf-only':
          return leaf
        case 'signers.example/other-key':
          return stranger.pem + intermediate.pem + root.pem
        case 'signers.example/other-name': {
          const asked = new x509.Pkcs10CertificateRequest(request.csrPem)
          const keys = await asked.publicKey.export()
          return (
            (await signLeaf(intermediate, ['spiffe://cluster.local/ns/a/sa/c'], keys)) + intermediate.pem + root.pem
          )
        }
        default:
          return leaf + intermediate.pem
      }
    },
  })
  const csrPem = await makeRequest({ key: 'ecP256', uris: [identity] })
  return { root, authority, asked, csrPem }
}

test('the cluster signs what the caller may have; the root of the mesh goes with it', async () => {
  const { authority, asked, csrPem, root } = await world()
  const chain = await authority.sign({ csrPem, identities: [identity], validitySeconds: 0 })
  assert.equal(chain.length, 3)
  assert.equal(chain[2]?.trim(), root.pem.trim())
  assert.equal(asked[0]?.signerName, 'example.com/default')
  assert.equal(asked[0]?.expirationSeconds, 3600)
  assert.equal(authority.rootBundle.trim(), root.pem.trim())
})

test('what is not theirs, too long, without a root or not signed is refused', async () => {
  const { authority, csrPem } = await world()
  const sign = (identities: readonly string[], validitySeconds = 0, signer = '') =>
    authority.sign({ csrPem, identities, validitySeconds }, signer)
  await assert.rejects(sign(['spiffe://cluster.local/ns/a/sa/c']), {
    code: 'CSR_ERROR',
    message: 'unable to validate SAN Identities in CSR',
  })
  await assert.rejects(sign([identity], 7201), { code: 'TTL_ERROR' })
  await assert.rejects(sign([identity], 0, 'leaf-only'), {
    code: 'CSR_ERROR',
    message: 'failed to find root cert from either signed cert-chain or mesh config',
  })
  await assert.rejects(sign([identity], 0, 'broken'), { code: 'CERT_GEN_ERROR' })
  await assert.rejects(sign([identity], 0, 'other-key'), { message: /another key/ })
  await assert.rejects(sign([identity], 0, 'other-name'), {
    message: /certified spiffe:\/\/cluster.local\/ns\/a\/sa\/c/,
  })
})

test('a request that names nobody, or the caller by no identity, is not passed on', async () => {
  const names = new x509.SubjectAlternativeNameExtension([])
  const requests: readonly (readonly [string, Promise<string>])[] = [
    ['no list of names', makeRequest({ key: 'ecP256' })],
    ['an empty list of names', makeRequest({ key: 'ecP256', extraExtensions: [names] })],
    ['a page', makeRequest({ key: 'ecP256', uris: ['https://a.example/'] })],
    ['a DNS name alone', makeRequest({ key: 'ecP256', dns: ['a.example'] })],
  ]
  for (const [what, csrPem] of requests) {
    const pem = await csrPem
    assert.throws(
      () => validateRequestForSigner(pem, [identity, 'https://a.example/', 'a.example']),
      { code: 'CSR_ERROR', message: 'unable to validate SAN Identities in CSR' },
      what,
    )
  }
})

test('a request that asks for more in any place is not passed on', async () => {
  const names = new x509.SubjectAlternativeNameExtension([])
  const requests: readonly (readonly [string, Promise<string>])[] = [
    ['another DNS name', makeRequest({ key: 'ecP256', uris: [identity], dns: ['a.example'] })],
    ['an identity twice', makeRequest({ key: 'ecP256', uris: [identity, identity] })],
    ['two identities', makeRequest({ key: 'ecP256', uris: [identity, other] })],
    ['an empty second list', makeRequest({ key: 'ecP256', uris: [identity], extraExtensions: [names] })],
    ['an address', makeRequest({ key: 'ecP256', uris: [identity], ips: ['10.0.0.1'] })],
    ['a mailbox', makeRequest({ key: 'ecP256', uris: [identity], emails: ['a@b.example'] })],
    [
      'a key usage',
      makeRequest({ key: 'ecP256', uris: [identity], extraExtensions: [new x509.KeyUsagesExtension(4)] }),
    ],
    [
      'a second list of names',
      requestWith(extensionsAttribute([identity]), extensionsAttribute(['spiffe://x/ns/y/sa/z'])),
    ],
    ['a second value of the list', requestWith(extensionsAttribute([identity], ['spiffe://x/ns/y/sa/z']))],
    ['a password', requestWith(extensionsAttribute([identity]), new x509.ChallengePasswordAttribute('secret'))],
    ['a unit', makeRequest({ key: 'ecP256', uris: [identity], subject: { OU: '' } })],
  ]
  for (const [what, csrPem] of requests) {
    const pem = await csrPem
    assert.throws(
      () => validateRequestForSigner(pem, [identity, other, 'a@b.example', '10.0.0.1', 'a.example']),
      { code: 'CSR_ERROR' },
      what,
    )
  }
  const plain = await requestWith(extensionsAttribute([identity]))
  assert.equal(validateRequestForSigner(plain, [other, identity]).identity, identity)
})

function extensionsAttribute(...values: readonly (readonly string[])[]): x509.Attribute {
  const lists = values.map((uris) => {
    const names = new x509.SubjectAlternativeNameExtension(uris.map((value) => ({ type: 'url' as const, value })))
    return new Uint8Array(encode(tags.sequence, Buffer.from(names.rawData))).buffer
  })
  return new x509.Attribute('1.2.840.113549.1.9.14', lists)
}

async function requestWith(...attributes: readonly x509.Attribute[]): Promise<string> {
  const keys = await makeKeys('ecP256')
  const signingAlgorithm = { name: 'ECDSA', hash: 'SHA-256' }
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    keys,
    signingAlgorithm,
    attributes: [...attributes],
  })
  return request.toString('pem')
}

test('a chain is accepted from a leaf up, over certificates that are valid', async () => {
  const past = { notBefore: new Date(Date.now() - 2000_000), notAfter: new Date(Date.now() - 1000_000) }
  const root = await makeCa({ name: 'root' })
  const [good, ended] = [
    await makeCa({ name: 'int', issuer: root }),
    await makeCa({ name: 'old', issuer: root, ...past }),
  ]
  const oldRoot = await makeCa({ name: 'old root', ...past })
  const leafOf = async (...made: Parameters<typeof makeLeaf>) => (await makeLeaf(...made)).pem
  const leaf = await leafOf(good, [identity])
  assert.equal(chainWithRoot(leaf + good.pem, root.pem).length, 3)
  const refused: readonly (readonly [string, string, string])[] = [
    ['the wrong way round', good.pem + leaf, root.pem],
    ['an intermediate that has ended', (await leafOf(ended, [identity])) + ended.pem, root.pem],
    ['a leaf that has ended', (await leafOf(good, [identity], past)) + good.pem, root.pem],
    ['a root that has ended', await leafOf(oldRoot, [identity]), oldRoot.pem],
    ['a root that has ended in the chain', (await leafOf(oldRoot, [identity])) + oldRoot.pem, ''],
  ]
  for (const [what, chain, roots] of refused)
    assert.throws(() => chainWithRoot(chain, roots), { code: 'CSR_ERROR' }, what)
})

test('certificates that cannot be parsed are refused as such', async () => {
  const root = await makeCa({ name: 'root' })
  const leaf = (await makeLeaf(root, [identity])).pem
  const garbage = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  const refused: readonly (readonly [string, string, string, RegExp])[] = [
    ['a leaf', garbage, root.pem, /signer returned a certificate that cannot be parsed/],
    ['a root of the chain', leaf + garbage, '', /signer returned a certificate that cannot be parsed/],
    ['a configured root', leaf, root.pem + garbage, /root that is configured for the signer's certificates cannot/],
  ]
  for (const [what, chain, roots, message] of refused) {
    assert.throws(() => chainWithRoot(chain, roots), { name: 'SigningError', code: 'CSR_ERROR', message }, what)
  }
})
