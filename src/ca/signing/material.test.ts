import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeCa, makeCrl } from '../../../test/support/ca.ts'
import { signingMaterial } from './material.ts'
import { caSourceOf, checkReplacement, pluggedMaterial } from './plugged.ts'

test('an intermediate with its chain to the root', async () => {
  const root = await makeCa({ name: 'root' })
  const upper = await makeCa({ name: 'upper', issuer: root })
  const lower = await makeCa({ name: 'lower', issuer: upper, kind: 'rsa2048' })
  const pem = { certificate: lower.pem, key: lower.key, roots: root.pem }
  const withSigner = signingMaterial({ ...pem, chain: lower.pem + upper.pem })
  assert.deepEqual(
    withSigner.chain,
    [lower.pem, upper.pem].map((text) => `${text.trim()}\n`),
  )
  assert.equal(signingMaterial({ ...pem, chain: upper.pem }).chain.length, 2)
  assert.throws(() => signingMaterial({ ...pem, chain: lower.pem }), /does not lead to a root/)
})

test('material that does not fit together is refused', async () => {
  const [root, other, leaf] = await Promise.all([
    makeCa({ name: 'root' }),
    makeCa({ name: 'other' }),
    makeCa({ name: 'leaf', isCa: false }),
  ])
  const make = (certificate: string, key: string, roots: string) =>
    signingMaterial({ certificate, key, roots, chain: '' })
  assert.throws(() => make(root.pem, other.key, root.pem), { code: 'INVALID', message: /key does not match/ })
  assert.throws(() => make(leaf.pem, leaf.key, leaf.pem), /not authorized to sign other certificates/)
  assert.throws(() => make(root.pem, root.key, other.pem), /does not lead to a root/)
  assert.throws(() => make(root.pem, root.key, ''), /root bundle holds no certificate/)
  assert.throws(() => make('', root.key, root.pem), { code: 'INVALID' })
  assert.throws(() => make(root.pem, '', root.pem), { code: 'INVALID' })
})

test('files that have expired are refused at start', async () => {
  const root = await makeCa({ name: 'root', notAfter: new Date(Date.now() - 1000) })
  const files = { 'ca-cert.pem': root.pem, 'ca-key.pem': root.key, 'root-cert.pem': root.pem, 'cert-chain.pem': '' }
  assert.throws(() => pluggedMaterial(files, 'istio', new Date()), /has expired/)
})

test('a revocation list must cover every certificate of the chain', async () => {
  const root = await makeCa({ name: 'root' })
  const signer = await makeCa({ name: 'signer', issuer: root })
  const files = { certificate: signer.pem, key: signer.key, roots: root.pem, chain: signer.pem }
  assert.ok(signingMaterial({ ...files, crl: await makeCrl(root, []) }).crl)
  const ofSigner = await makeCrl(signer, [])
  assert.throws(() => signingMaterial({ ...files, crl: ofSigner }), /does not cover/)
  assert.throws(() => signingMaterial({ ...files, crl: 'junk' }), /cannot be read/)
})

test('the files there are tell the kind of CA', () => {
  assert.deepEqual(caSourceOf([]), { kind: 'self-signed' })
  assert.deepEqual(caSourceOf(['root-cert.pem']), { kind: 'self-signed' })
  assert.deepEqual(caSourceOf(['tls.crt', 'tls.key', 'ca.crt']), { kind: 'plugged', layout: 'tls' })
  const all = ['ca-cert.pem', 'ca-key.pem', 'root-cert.pem', 'cert-chain.pem']
  assert.deepEqual(caSourceOf(all), { kind: 'plugged', layout: 'istio' })
  assert.deepEqual(caSourceOf([...all, 'istio-generated'], true), { kind: 'self-signed' })
  assert.deepEqual(caSourceOf([...all, 'istio-generated'], false), { kind: 'plugged', layout: 'istio' })
  for (const name of all) {
    assert.throws(() => caSourceOf(all.filter((other) => other !== name)), { code: 'INCOMPLETE' })
  }
})

test('other roots are taken only in a mesh with several', async () => {
  const [a, b] = await Promise.all([makeCa({ name: 'a' }), makeCa({ name: 'b' })])
  const material = (roots: string) => signingMaterial({ certificate: a.pem, key: a.key, roots, chain: '' })
  checkReplacement(material(a.pem + b.pem), material(b.pem + a.pem), false)
  assert.throws(() => checkReplacement(material(a.pem), material(a.pem + b.pem), false), { code: 'ROOT_CHANGED' })
  checkReplacement(material(a.pem), material(a.pem + b.pem), true)
})
