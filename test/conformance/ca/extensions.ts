// The extensions that a request of the data asks for, by name.
import assert from 'node:assert/strict'
import { x509 } from '../../support/ca.ts'

const makers: Readonly<Record<string, () => x509.Extension>> = {
  basicConstraints: () => new x509.BasicConstraintsExtension(true, undefined, true),
  keyUsage: () => new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
  extKeyUsage: () => new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.codeSigning]),
}

export function extensionsOf(names: readonly string[]): x509.Extension[] {
  return names.map((name) => {
    const make = makers[name]
    assert.ok(make, `extension ${name} is not known`)
    return make()
  })
}
