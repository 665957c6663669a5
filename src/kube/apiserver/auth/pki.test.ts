import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadPki } from './pki.ts'

test('keys and certificates are made once, are for their purpose, and the serving one is renewed for a new address', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'lateen-pki-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const first = await loadPki({ directory, addresses: ['10.96.0.1', 'api.test'] })
  const ca = new X509Certificate(first.authority.certificate)
  const serving = new X509Certificate(first.serving.certificate)
  assert.ok(serving.checkIssued(ca) && serving.verify(ca.publicKey))
  assert.equal(serving.checkIP('10.96.0.1'), '10.96.0.1')
  assert.equal(serving.checkHost('kubernetes.default.svc.cluster.local'), 'kubernetes.default.svc.cluster.local')
  assert.equal(serving.checkHost('api.test'), 'api.test')
  assert.equal(statSync(join(directory, 'ca.key')).mode & 0o777, 0o600)
  const admin = new X509Certificate(first.admin.certificate)
  assert.match(admin.subject, /O=system:masters/)

  const second = await loadPki({ directory, addresses: ['10.96.0.1', 'api.test'] })
  assert.deepEqual(second, first)
  const third = await loadPki({ directory, addresses: ['192.0.2.7'] })
  assert.equal(third.authority.certificate, first.authority.certificate)
  assert.equal(new X509Certificate(third.serving.certificate).checkIP('192.0.2.7'), '192.0.2.7')
})
