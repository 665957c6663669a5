// Whatever bytes come in, parsers answer with their own error and nothing else, in time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { makeCa, makeCrl, makeRequest } from '../../test/support/ca.ts'
import { identitiesOfXfcc } from './authentication/xfcc.ts'
import { parseRevocationLists, pemBlocks, toPem } from './client/index.ts'
import { checkCertificateRequest } from './signing/csr.ts'

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
