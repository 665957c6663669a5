import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { makeCa } from '../../test/support/ca.ts'
import { validateTrustBundle } from './cluster-trust-bundle.ts'

const { pem } = await makeCa({ name: 'root' })
const { pem: other } = await makeCa({ name: 'other' })
const signerName = 'example.com/signer'
const faultsOf = (bundle: object, old?: object): string[] => {
  const whole = (part: object) => ({ name: 'example.com:signer:roots', signerName, trustBundle: pem, ...part })
  const causes = validateTrustBundle(whole(bundle), old === undefined ? undefined : whole(old))
  return causes.map(({ field, message }) => `${field}: ${message}`)
}

describe('a ClusterTrustBundle', () => {
  test('holds certificates, with a signer or without', () => {
    assert.deepEqual(faultsOf({ trustBundle: `# roots\n${pem}\n${other}` }), [])
    assert.deepEqual(faultsOf({ name: 'roots', signerName: undefined }), [])
    assert.deepEqual(faultsOf({ trustBundle: other }, {}), [])
  })

  for (const [bundle, fault] of [
    [{ name: 'roots' }, /metadata\.name: .*must be named with prefix example\.com:signer:/],
    [{ signerName: undefined }, /metadata\.name: .*must not have ":" in its name/],
    [{ name: 'example.com:signer:Roots' }, /metadata\.name: /],
    [{ name: 'example.com:roots', signerName: 'example.com' }, /spec\.signerName: .*fully qualified domain and path/],
    [{ trustBundle: '' }, /spec\.trustBundle: Required value/],
    [{ trustBundle: 'none' }, /at least one trust anchor/],
    [{ trustBundle: pem.replaceAll('CERTIFICATE', 'PRIVATE KEY') }, /entry 0 has bad block type: PRIVATE KEY/],
    [{ trustBundle: pem.replace('CERTIFICATE-----\n', 'CERTIFICATE-----\nA: b\n\n') }, /entry 0 has PEM block headers/],
    [{ trustBundle: `${pem}\n${pem.replace(/\n[^-]{20}/, '\nAAAA')}` }, /entry 1 does not parse as X\.509/],
    [{ trustBundle: `${pem}\n${other}\n${pem}` }, /duplicate trust anchor \(indices \[0 2\]\)/],
  ] as const) {
    test(`is refused: ${fault.source}`, () => {
      const faults = faultsOf(bundle)
      assert.equal(faults.length, 1, faults.join(', '))
      assert.match(faults[0] ?? '', fault)
    })
  }

  test('keeps its signer', () => {
    const faults = faultsOf({}, { signerName: undefined })
    assert.deepEqual(faults.length, 1)
    assert.match(faults[0] ?? '', /spec\.signerName: .*immutable/)
  })
})
