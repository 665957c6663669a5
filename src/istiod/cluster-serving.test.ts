import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { makeCa, makeRequest, type TestCa, x509 } from '../../test/support/ca.ts'
import { servingFromCluster } from './cluster-serving.ts'
import { firstEnd } from './registration.ts'

const names = ['istiod.istio-system.svc', 'istiod']

/** A signer that certifies these names for the key of a request. */
async function certify(root: TestCa, csrPem: string, dns: readonly string[], subject = ''): Promise<string> {
  const certificate = await x509.X509CertificateGenerator.create({
    issuer: root.certificate.subjectName,
    subject,
    publicKey: new x509.Pkcs10CertificateRequest(csrPem).publicKey,
    signingKey: root.keys.privateKey,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 3_600_000),
    extensions:
      dns.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(dns.map((value) => ({ type: 'dns', value })))],
  })
  return `${certificate.toString('pem')}\n`
}

async function servedBy(sign: (root: TestCa, csrPem: string) => Promise<string>) {
  const root = await makeCa({ name: 'root' })
  const serving = servingFromCluster({
    signInCluster: ({ csrPem }) => sign(root, csrPem),
    signerName: 'example.com/serving',
    rootsOf: () => root.pem,
    maxTtlSeconds: 7200,
  })
  return await serving.issue(names, 3600)
}

test('a certificate for our key and names is served, whatever names it has besides', async () => {
  for (const more of [[], ['also.example']]) {
    const { chain } = await servedBy((root, csr) => certify(root, csr, [...names, ...more]))
    assert.ok(new X509Certificate(chain).checkHost('istiod'))
  }
})

test('one for another key is refused', async () => {
  const theirs = await makeRequest({ key: 'ecP256', uris: [] })
  const another = servedBy((root) => certify(root, theirs, names))
  await assert.rejects(another, { code: 'CERT_GEN_ERROR', message: /another key/ })
})

test('one without all of our names is refused, with those that are missing', async () => {
  const short = servedBy((root, csr) => certify(root, csr, ['istiod']))
  await assert.rejects(short, { code: 'CERT_GEN_ERROR', message: /without the names istiod\.istio-system\.svc$/ })
  const bare = servedBy((root, csr) => certify(root, csr, [], 'CN=istiod'))
  await assert.rejects(bare, { message: /without the names istiod\.istio-system\.svc, istiod$/ })
})

test('of roots the first end counts, of those that can be read', async () => {
  const { pem } = await makeCa({ name: 'root' })
  const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  assert.deepEqual(firstEnd(broken + pem), new X509Certificate(pem).validToDate)
  assert.equal(firstEnd(broken), undefined)
  assert.equal(firstEnd(''), undefined)
})
