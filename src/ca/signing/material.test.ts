import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
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

const hour = 3_600_000

test('a chain is sent from the signing certificate up, however the file has it', async () => {
  const root = await makeCa({ name: 'root' })
  const upper = await makeCa({ name: 'upper', issuer: root })
  const middle = await makeCa({ name: 'middle', issuer: upper })
  const lower = await makeCa({ name: 'lower', issuer: middle })
  const pem = { certificate: lower.pem, key: lower.key, roots: root.pem }
  const inOrder = [lower, middle, upper].map((ca) => `${ca.pem.trim()}\n`)
  for (const chain of [
    [upper, lower, middle],
    [upper, middle],
    [lower, lower, middle, upper, upper],
  ]) {
    assert.deepEqual(signingMaterial({ ...pem, chain: chain.map((ca) => ca.pem).join('') }).chain, inOrder)
  }
  const withRoot = signingMaterial({ ...pem, chain: [root, upper, middle, lower].map((ca) => ca.pem).join('') })
  assert.deepEqual(withRoot.chain, [...inOrder, `${root.pem.trim()}\n`])
})

test('a root that has ended or is not valid yet is none, and nothing outlives it', async () => {
  const now = new Date()
  const at = (hours: number) => new Date(now.getTime() + hours * hour)
  const signed = async (notBefore: Date, notAfter: Date) => {
    const root = await makeCa({ name: 'root', notBefore, notAfter })
    const signer = await makeCa({ name: 'signer', issuer: root, notAfter: at(20) })
    return { certificate: signer.pem, key: signer.key, roots: root.pem, chain: signer.pem }
  }
  const ended = await signed(at(-10), at(-1))
  assert.throws(() => signingMaterial(ended, now), { code: 'INVALID', message: /O=root has expired/ })
  const early = await signed(at(1), at(30))
  assert.throws(() => signingMaterial(early, now), { code: 'INVALID', message: /O=root is valid from/ })
  const short = signingMaterial(await signed(at(-1), at(5)), now)
  assert.ok(Math.abs(short.notAfter.getTime() - at(5).getTime()) < 1000)
})

test('of several roots with the same key the valid one counts', async () => {
  const now = new Date()
  const at = (hours: number) => new Date(now.getTime() + hours * hour)
  const old = await makeCa({ name: 'root', notBefore: at(-10), notAfter: at(-1) })
  const renewed = await makeCa({ name: 'root', keys: old.keys, notAfter: at(30) })
  const signer = await makeCa({ name: 'signer', issuer: old, notAfter: at(20) })
  const pem = { certificate: signer.pem, key: signer.key, roots: old.pem + renewed.pem, chain: signer.pem }
  assert.equal(signingMaterial(pem, now).notAfter.getTime(), signer.certificate.notAfter.getTime())
})

test('an authority that may have none below it has none', async () => {
  const root = await makeCa({ name: 'root', pathLength: 0 })
  const signer = await makeCa({ name: 'signer', issuer: root })
  const pem = { certificate: signer.pem, key: signer.key, roots: root.pem, chain: signer.pem }
  assert.throws(() => signingMaterial(pem), { code: 'INVALID', message: /allows 0 authorities below it, not 1/ })
  const top = await makeCa({ name: 'top', pathLength: 1 })
  const last = await makeCa({ name: 'last', issuer: top, pathLength: 0 })
  assert.ok(signingMaterial({ certificate: last.pem, key: last.key, roots: top.pem, chain: '' }))
})

test('keys are read in each of their forms, but not encrypted ones', async () => {
  for (const kind of ['rsa2048', 'ecP256', 'ecP384', 'ed25519'] as const) {
    const root = await makeCa({ name: 'root', kind })
    const key = createPrivateKey(root.key)
    const forms = {
      rsa2048: ['pkcs1', 'pkcs8'],
      ecP256: ['sec1', 'pkcs8'],
      ecP384: ['sec1', 'pkcs8'],
      ed25519: ['pkcs8'],
    } as const
    for (const type of forms[kind]) {
      const pem = key.export({ type, format: 'pem' }).toString()
      assert.ok(signingMaterial({ certificate: root.pem, key: pem, roots: root.pem, chain: '' }))
      const encrypted = key.export({ type, format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }).toString()
      assert.throws(() => signingMaterial({ certificate: root.pem, key: encrypted, roots: root.pem, chain: '' }), {
        code: 'INVALID',
        message: /key is encrypted/,
      })
    }
  }
})

test('a part of a set that is named otherwise is a part, too', () => {
  for (const names of [['tls.key', 'ca.crt'], ['tls.crt'], ['tls.key'], ['tls.crt', 'tls.key']]) {
    assert.throws(() => caSourceOf(names), { code: 'INCOMPLETE' }, names.join(' '))
  }
})

test('files cut short anywhere are refused with a reason', async () => {
  const root = await makeCa({ name: 'root' })
  const signer = await makeCa({ name: 'signer', issuer: root })
  const whole = { certificate: signer.pem, key: signer.key, roots: root.pem, chain: signer.pem + root.pem }
  for (const part of ['certificate', 'key', 'roots'] as const) {
    for (let length = 0; length < whole[part].trimEnd().length; length += 37) {
      const cut = { ...whole, [part]: whole[part].slice(0, length) }
      assert.throws(() => signingMaterial(cut), { name: 'MaterialError', code: 'INVALID' }, `${part} ${length}`)
    }
  }
})
