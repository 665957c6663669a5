import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { makeCa, makeCrl, makeLeaf } from '../../../test/support/ca.ts'
import { parseRevocationLists, revokedIn } from '../../ca/client/index.ts'
import { createKnownAuthorities } from './authorities.ts'

test('a leaf whose intermediate is revoked is found out with the authorities of our own certificate', async () => {
  const root = await makeCa({ name: 'root' })
  const between = await makeCa({ name: 'between', issuer: root })
  const leaf = new X509Certificate((await makeLeaf(between, ['spiffe://t/ns/a/sa/b'])).pem)
  const lists = parseRevocationLists(Buffer.from(await makeCrl(root, [new X509Certificate(between.pem).serialNumber])))
  const authorities = createKnownAuthorities()
  assert.equal(revokedIn([leaf], authorities.list(), lists), undefined)
  authorities.learn(between.pem, root.pem)
  assert.equal(revokedIn([leaf], authorities.list(), lists)?.subject, 'O=between')
})

test('what is learned twice is kept once, and the oldest go in the end', async () => {
  const authorities = createKnownAuthorities()
  const first = await makeCa({ name: 'first' })
  authorities.learn(first.pem, `${first.pem}${first.pem}`)
  assert.equal(authorities.list().length, 1)
  for (let count = 0; count < 64; count += 1) authorities.learn((await makeCa({ name: `r${count}` })).pem)
  assert.equal(authorities.list().length, 64)
  assert.equal(
    authorities.list().some(({ subject }) => subject === 'O=first'),
    false,
  )
})
