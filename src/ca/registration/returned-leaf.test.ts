import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { certifyAs, makeCa, makeRequest, type x509 } from '../../../test/support/ca.ts'
import { createRegistrationAuthority } from './registration-authority.ts'

const identity = 'spiffe://cluster.local/ns/a/sa/b'
const other = 'spiffe://cluster.local/ns/a/sa/c'
const theirs = { type: 'url', value: identity } as const

interface Leaf {
  readonly names: readonly x509.JsonGeneralName[]
  readonly subject?: string
}

/** Signs a request for `identity` by a signer of the cluster that makes this of it. */
async function signedAs(leaf: Leaf, identities: readonly string[] = [identity]): Promise<readonly string[]> {
  const root = await makeCa({ name: 'root' })
  const authority = createRegistrationAuthority({
    certSignerDomain: '',
    defaultSigner: 'example.com/default',
    defaultTtlSeconds: 3600,
    maxTtlSeconds: 7200,
    rootsOf: () => root.pem,
    signInCluster: ({ csrPem }) => certifyAs(root, csrPem, leaf.names, leaf.subject),
  })
  const csrPem = await makeRequest({ key: 'ecP256', uris: [identity] })
  return authority.sign({ csrPem, identities, validitySeconds: 0 })
}

test('a certificate that names the caller alone is handed on', async () => {
  for (const subject of ['', 'O=cluster', `CN=${identity}`]) {
    const [leaf = ''] = await signedAs({ names: [theirs], subject })
    assert.equal(new X509Certificate(leaf).subjectAltName, `URI:${identity}`)
  }
})

const refused: readonly (readonly [string, Leaf, RegExp])[] = [
  [
    'a DNS name',
    { names: [theirs, { type: 'dns', value: 'istiod.istio-system.svc' }] },
    /istiod\.istio-system\.svc \(dns\)/,
  ],
  ['a DNS name alone', { names: [{ type: 'dns', value: 'a.example' }] }, /a\.example \(dns\)/],
  ['a DNS name that is written as theirs', { names: [{ type: 'dns', value: identity }] }, /\(dns\)/],
  ['an address', { names: [theirs, { type: 'ip', value: '10.0.0.1' }] }, /10\.0\.0\.1 \(ip\)/],
  ['a mailbox', { names: [theirs, { type: 'email', value: 'a@b.example' }] }, /a@b\.example \(email\)/],
  ['a name of a directory', { names: [theirs, { type: 'dn', value: 'CN=a' }] }, /\(other\)/],
  ['somebody else', { names: [theirs, { type: 'url', value: other }] }, /sa\/c \(uri\)/],
  ['the caller twice', { names: [theirs, theirs] }, /2 times/],
  ['nobody', { names: [] }, /0 times/],
  ['a common name', { names: [theirs], subject: 'CN=istiod.istio-system.svc' }, /svc \(common name\)/],
  ['a second common name', { names: [theirs], subject: `CN=${identity}, CN=b.example` }, /b\.example \(common name\)/],
]
for (const [what, leaf, message] of refused) {
  test(`a certificate that names ${what} is refused`, async () => {
    await assert.rejects(signedAs(leaf), { name: 'SigningError', code: 'CERT_GEN_ERROR', message })
  })
}

test('a certificate for another identity of the caller than was asked for is refused', async () => {
  const signing = signedAs({ names: [{ type: 'url', value: other }] }, [identity, other])
  await assert.rejects(signing, { code: 'CERT_GEN_ERROR', message: /sa\/c \(uri\)/ })
})
