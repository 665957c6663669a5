import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { certifyAs, makeCa, makeRequest, type TestCa } from '../../test/support/ca.ts'
import { servingFromCluster } from './cluster-serving.ts'
import { firstEnd } from './registration.ts'

const names = ['istiod.istio-system.svc', 'istiod']

const dnsNames = (names: readonly string[]) => names.map((value) => ({ type: 'dns' as const, value }))

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
    const { chain } = await servedBy((root, csr) => certifyAs(root, csr, dnsNames([...names, ...more])))
    assert.ok(new X509Certificate(chain).checkHost('istiod'))
  }
})

test('one for another key is refused', async () => {
  const theirs = await makeRequest({ key: 'ecP256', uris: [] })
  const another = servedBy((root) => certifyAs(root, theirs, dnsNames(names)))
  await assert.rejects(another, { code: 'CERT_GEN_ERROR', message: /another key/ })
})

test('one without all of our names is refused, with those that are missing', async () => {
  const short = servedBy((root, csr) => certifyAs(root, csr, dnsNames(['istiod'])))
  await assert.rejects(short, { code: 'CERT_GEN_ERROR', message: /without the names istiod\.istio-system\.svc$/ })
  const bare = servedBy((root, csr) => certifyAs(root, csr, [], 'CN=istiod'))
  await assert.rejects(bare, { message: /without the names istiod\.istio-system\.svc, istiod$/ })
})

test('of roots the first end counts, of those that can be read', async () => {
  const { pem } = await makeCa({ name: 'root' })
  const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  assert.deepEqual(firstEnd(broken + pem), new X509Certificate(pem).validToDate)
  assert.equal(firstEnd(broken), undefined)
  assert.equal(firstEnd(''), undefined)
})
