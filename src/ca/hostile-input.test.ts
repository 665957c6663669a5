// Whatever bytes come in, parsers answer with their own error and nothing else, in time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createLocalJWKSet, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { makeCa, makeCrl, makeRequest } from '../../test/support/ca.ts'
import { pemBlocks, toPem } from '../util/index.ts'
import { authenticate } from './authentication/authenticator.ts'
import { createOidcAuthenticator } from './authentication/oidc.ts'
import { identitiesOfXfcc } from './authentication/xfcc.ts'
import { parseRevocationLists } from './client/index.ts'
import { validateRequestForSigner } from './registration/validate-csr.ts'
import { checkCertificateRequest } from './signing/csr.ts'
import { signingMaterial } from './signing/material.ts'

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : error
}

async function mutations(der: Buffer, check: (bytes: Buffer) => Promise<void> | void): Promise<void> {
  const change = fc.array(fc.tuple(fc.nat(der.length - 1), fc.integer({ min: 0, max: 255 })), {
    minLength: 1,
    maxLength: 4,
  })
  const property = fc.asyncProperty(change, fc.nat(der.length), async (changes, length) => {
    const bytes = Buffer.from(der.subarray(0, Math.max(1, der.length - (length % 7))))
    for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value
    await check(bytes)
  })
  await fc.assert(property, { numRuns: 300 })
}

test('changed certificate requests', async () => {
  const [block] = pemBlocks(await makeRequest({ key: 'ecP256', uris: ['spiffe://a/ns/b/sa/c'] }))
  assert.ok(block)
  await mutations(block.der, async (bytes) => {
    try {
      checkCertificateRequest(toPem('CERTIFICATE REQUEST', bytes))
      assert.ok(bytes.equals(block.der), 'a changed request was accepted')
    } catch (error) {
      assert.equal(codeOf(error), 'CSR_ERROR')
    }
  })
})

test('changed revocation lists', async () => {
  const [block] = pemBlocks(await makeCrl(await makeCa({ name: 'a' }), ['01', '02']))
  assert.ok(block)
  await mutations(block.der, (bytes) => {
    try {
      parseRevocationLists(bytes)
    } catch (error) {
      assert.equal(codeOf(error), 'INVALID_CRL')
    }
  })
})

test('any forwarded certificate header', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('"', '\\', ',', ';', '=', 'URI', 'Subject', 'CN', 'x', '/') }),
      (header) => {
        try {
          assert.ok(identitiesOfXfcc(header).every((identity) => identity !== ''))
        } catch (error) {
          assert.equal(codeOf(error), 'UNAUTHENTICATED')
        }
      },
    ),
    { numRuns: 1000 },
  )
})

test('long texts of PEM lookalikes are read in time', () => {
  const started = performance.now()
  pemBlocks('-----BEGIN CERTIFICATE-----\n'.repeat(5_000))
  pemBlocks(`-----BEGIN CERTIFICATE-----\n${'A'.repeat(100_000)}`)
  assert.ok(performance.now() - started < 5_000)
})

test('changed tokens', async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const keys = createLocalJWKSet({ keys: [{ ...(await exportJWK(publicKey)), alg: 'ES256' }] })
  const rule = { issuer: 'https://i', audiences: ['us'] }
  const authenticator = createOidcAuthenticator({ rule, keys, trustDomain: () => 'td' })
  const claims = { iss: 'https://i', aud: 'us', sub: 'system:serviceaccount:a:b' }
  const token = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256' }).setExpirationTime('1h').sign(privateKey)
  const bytesOf = (text: string): string =>
    text
      .split('.')
      .map((part) => Buffer.from(part, 'base64url').toString('hex'))
      .join()
  await mutations(Buffer.from(token), async (bytes) => {
    const changed = bytes.toString('latin1')
    const header = (name: string) => (name === 'authorization' ? [`Bearer ${changed}`] : [])
    const outcome = await authenticate([authenticator], { peerAddress: '', header })
    // Base64 has bits that say nothing.
    if (outcome.kind === 'accepted') assert.equal(bytesOf(changed), bytesOf(token))
    else assert.ok(!outcome.reasons.join().includes(changed))
  })
})

test('changed signing material', async () => {
  const root = await makeCa({ name: 'root' })
  const signer = await makeCa({ name: 'signer', issuer: root })
  const whole = { certificate: signer.pem, key: signer.key, roots: root.pem, chain: signer.pem }
  for (const part of ['certificate', 'key', 'roots', 'chain'] as const) {
    const [block] = pemBlocks(whole[part])
    assert.ok(block)
    await mutations(block.der, (bytes) => {
      try {
        signingMaterial({ ...whole, [part]: toPem(block.label, bytes) }, new Date())
      } catch (error) {
        assert.equal(codeOf(error), 'INVALID')
      }
    })
  }
})

test('changed certificate requests for another signer', async () => {
  const identity = 'spiffe://a/ns/b/sa/c'
  const [block] = pemBlocks(await makeRequest({ key: 'ed25519', uris: [identity], subject: { O: '' } }))
  assert.ok(block)
  await mutations(block.der, (bytes) => {
    try {
      validateRequestForSigner(toPem('CERTIFICATE REQUEST', bytes), [identity])
      assert.ok(bytes.equals(block.der), 'a changed request was accepted')
    } catch (error) {
      assert.equal(codeOf(error), 'CSR_ERROR')
    }
  })
})
