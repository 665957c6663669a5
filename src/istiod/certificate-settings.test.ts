import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { defaultMeshConfig } from '../config/index.ts'
import { readCertificateSettings } from './certificate-settings.ts'
import { rootsInMeshConfig, rootsOfSigners } from './registration.ts'

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

test('a mounted root file counts for every signer, before what mesh config says, and as it is at the time', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'lateen-external-root-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const externalRootFile = join(directory, 'root-cert.pem')
  const fields = { caCertificates: [{ pem: 'of mesh config', certSigners: ['a/b'] }] }
  const rootsOf = rootsOfSigners({ externalRootFile }, () => ({ ...defaultMeshConfig('istio-system'), fields }))
  assert.equal(rootsOf('a/b'), 'of mesh config')
  writeFileSync(externalRootFile, 'of the file')
  assert.deepEqual(['a/b', 'a/c'].map(rootsOf), ['of the file', 'of the file'])
  assert.throws(() => rootsOfSigners({ externalRootFile: directory }, () => defaultMeshConfig('istio-system'))('a/b'), {
    code: 'EISDIR',
  })
  assert.equal(readCertificateSettings({}).externalRootFile, './etc/external-ca-cert/root-cert.pem')
})
