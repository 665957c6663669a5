import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { makeCa, makeLeaf } from '../../test/support/ca.ts'
import { isIssuedBy } from './issued-by.ts'

const kinds = ['ecP256', 'ecP384', 'rsa2048', 'ed25519'] as const

test('the issuer is who signed it, not who has the same name, whatever the kinds of keys', async () => {
  for (const kind of kinds) {
    const issuer = await makeCa({ name: 'one', kind })
    const leaf = new X509Certificate((await makeLeaf(issuer, { uris: ['spiffe://a.example/ns/b/sa/c'] })).pem)
    assert.equal(isIssuedBy(leaf, new X509Certificate(issuer.pem)), true, kind)
    for (const other of kinds) {
      const twin = new X509Certificate((await makeCa({ name: 'one', kind: other })).pem)
      assert.equal(isIssuedBy(leaf, twin), false, `${kind} ${other}`)
    }
  }
})

test('an issuer whose key cannot be read is none', async () => {
  const issuer = await makeCa({ name: 'one' })
  const leaf = new X509Certificate((await makeLeaf(issuer, { uris: ['spiffe://a.example/ns/b/sa/c'] })).pem)
  const unreadable = new Proxy(new X509Certificate(issuer.pem), {
    get: (of, name) => {
      if (name === 'publicKey') throw new Error('unsupported')
      return Reflect.get(of, name, of)
    },
  })
  assert.equal(isIssuedBy(leaf, unreadable), false)
})
