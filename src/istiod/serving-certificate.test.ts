import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createTestPki } from '../../test/support/test-pki.ts'
import { readServingFiles } from './serving-certificate.ts'

describe('serving files', () => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-serving-'))
  const files = { cert: join(dir, 'tls.crt'), key: join(dir, 'tls.key'), ca: join(dir, 'ca.crt') }
  let otherKey: string

  before(async () => {
    const pki = await createTestPki()
    const [one, other] = [await pki.issue('localhost'), await pki.issue('localhost')]
    otherKey = other.privateKey
    writeFileSync(files.cert, one.chain)
    writeFileSync(files.key, one.privateKey)
    writeFileSync(files.ca, pki.roots)
  })
  after(() => rmSync(dir, { recursive: true }))

  test('that belong together are a serving certificate', () => {
    assert.ok(readServingFiles(files).notAfter.getTime() > Date.now())
  })

  test('that do not are refused, as are those that cannot be read', () => {
    writeFileSync(files.key, otherKey)
    assert.throws(() => readServingFiles(files), /tls\.key is not the key of .*tls\.crt/)
    writeFileSync(files.ca, 'nothing')
    assert.throws(() => readServingFiles(files))
    assert.throws(() => readServingFiles({ ...files, cert: join(dir, 'none') }), /ENOENT/)
  })
})
