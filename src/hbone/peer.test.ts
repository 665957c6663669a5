import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { makeCa, makeLeaf } from '../../test/support/ca.ts'
import { expectOneOf, expectTrustDomain, spiffeIdsOf } from './peer.ts'

test('certificates of peers: no name passes for another', async () => {
  const ca = await makeCa({ name: 'root' })
  const own = 'spiffe://cluster.local/ns/a/sa/b'
  const tricks = [
    `spiffe://evil/x, URI:${own}`,
    `https://evil/", URI:${own}`,
    `spiffe://evil/\\", URI:${own}, DNS:"`,
    `${own}/more`,
    `spiffe://cluster.local.evil/ns/a/sa/b`,
    `SPIFFE://cluster.local/ns/a/sa/b`,
    ` ${own}`,
  ]
  for (const trick of tricks) {
    const leaf = new X509Certificate((await makeLeaf(ca, [trick])).pem)
    const peer = { spiffeIds: spiffeIdsOf(leaf), chain: [leaf] }
    assert.notEqual(expectOneOf([own])(peer), undefined, trick)
    assert.notEqual(expectTrustDomain('cluster.local')(peer), undefined, trick)
  }
  const leaves = await Promise.all([[own], [own, 'spiffe://td/ns/c/sa/d'], []].map((uris) => makeLeaf(ca, uris)))
  const ders = leaves.map(({ pem }) => new X509Certificate(pem).raw)
  const name = ders[0]?.indexOf('spiffe') ?? 0
  const renamed = fc
    .array(fc.tuple(fc.integer({ min: -4, max: own.length }), fc.nat(255)), { maxLength: 4 })
    .map((changes) => {
      const copy = Uint8Array.from(ders[0] ?? [])
      for (const [at, value] of changes) copy[name + at] = value
      return copy
    })
  const hostile = fc
    .tuple(fc.constantFrom(...ders), fc.array(fc.tuple(fc.nat(999), fc.nat(255)), { maxLength: 3 }))
    .map(([der, changes]) => {
      const copy = Uint8Array.from(der)
      for (const [at, value] of changes) copy[at % copy.length] = value
      return copy
    })
  let read = 0
  fc.assert(
    fc.property(fc.oneof(renamed, hostile), (der) => {
      let certificate: X509Certificate
      try {
        certificate = new X509Certificate(der)
      } catch {
        return
      }
      read += 1
      const bytes = Buffer.from(der)
      for (const id of spiffeIdsOf(certificate)) {
        // As it is printed, a name has no byte that is not in the certificate.
        if (/^[\x20-\x7e]*$/.test(id)) assert.ok(bytes.includes(id), id)
      }
    }),
    { numRuns: 3000, interruptAfterTimeLimit: 3000 },
  )
  assert.ok(read > 100, `${read} certificates`)
})
