import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signerNameOf } from './signer-name.ts'

const names = { certSignerDomain: 'signers.example', defaultSigner: 'example.com/default' }

test('a request is certified by the signer that it names in the domain of signers, else by the default one', () => {
  assert.equal(signerNameOf(names, 'team'), 'signers.example/team')
  assert.equal(signerNameOf(names, ''), 'example.com/default')
})

test('without a domain no request may name a signer', () => {
  assert.throws(() => signerNameOf({ ...names, certSignerDomain: '' }, 'team'), {
    code: 'CERT_GEN_ERROR',
    message: 'certSignerDomain is required for signer team',
  })
})
