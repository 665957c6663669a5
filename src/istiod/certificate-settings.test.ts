import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCertificateSettings } from './certificate-settings.ts'
import { rootsInMeshConfig } from './registration.ts'

test('by default the own CA signs, and its next root is trusted for two days before it does', () => {
  const settings = readCertificateSettings({})
  assert.deepEqual(settings.signer, { kind: 'own' })
  assert.equal(settings.rootOverlapSeconds, 48 * 3600)
  assert.deepEqual([settings.rootCheckSeconds, settings.rootGraceRatio], [3600, 0.2])
  assert.equal(readCertificateSettings({ LATEEN_ROOT_ROTATION_NEW_KEY: 'false' }).rootOverlapSeconds, undefined)
})

test('another signer is named in full, or by the domain of those that requests name', () => {
  const external = { EXTERNAL_CA: 'ISTIOD_RA_KUBERNETES_API' }
  assert.deepEqual(readCertificateSettings({ ...external, K8S_SIGNER: 'a.b/c' }).signer, {
    kind: 'kubernetes',
    defaultSigner: 'a.b/c',
    certSignerDomain: '',
  })
  assert.equal(readCertificateSettings({ PILOT_CERT_PROVIDER: 'k8s.io/a.b/c' }).servingSigner, 'a.b/c')
})

const wrong: readonly [string, Readonly<Record<string, string>>, RegExp][] = [
  ['an unknown external CA', { EXTERNAL_CA: 'vault' }, /EXTERNAL_CA/],
  ['an external CA without a signer', { EXTERNAL_CA: 'ISTIOD_RA_KUBERNETES_API' }, /K8S_SIGNER/],
  ['a provider that signs nothing any more', { PILOT_CERT_PROVIDER: 'kubernetes' }, /PILOT_CERT_PROVIDER/],
  [
    'a percentage above 100',
    { CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE: '120' },
    /GRACE_PERIOD_PERCENTILE/,
  ],
]
for (const [name, env, message] of wrong) {
  test(`${name} is refused`, () =>
    assert.throws(() => readCertificateSettings(env), { code: 'INVALID_SETTING', message }))
}

test('of the roots of mesh config those count that name the signer', () => {
  const caCertificates = [
    { pem: 'one', certSigners: ['a/b', 'a/c'] },
    { pem: 'two', certSigners: ['a/d'] },
    { spiffeBundleUrl: 'https://x', certSigners: ['a/b'] },
    { pem: 'three' },
    null,
  ]
  assert.equal(rootsInMeshConfig({ fields: { caCertificates } }, 'a/b'), 'one')
  assert.equal(rootsInMeshConfig({ fields: { caCertificates: 'text' } }, 'a/b'), '')
})
