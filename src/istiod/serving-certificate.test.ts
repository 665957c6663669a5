import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makeCa } from '../../test/support/ca.ts'
import { createTestPki } from '../../test/support/test-pki.ts'
import { silentLogging } from '../observability/index.ts'
import { isSameBundle } from '../util/index.ts'
import { followServingCertificate, readServingFiles } from './serving-certificate.ts'
import { readSettings } from './settings.ts'

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

  test('go with the roots of the mesh, for the certificates of clients, and follow them', async () => {
    const [first, second] = [await makeCa({ name: 'first' }), await makeCa({ name: 'second' })]
    let changed = (): void => {}
    const authority = {
      rootBundle: first.pem,
      issueServingCertificate: () => assert.fail('files are there'),
      subscribe(listener: () => void) {
        changed = listener
        return () => {}
      },
    }
    const settings = readSettings({ tlsCertFile: files.cert, tlsKeyFile: files.key, caCertFile: files.ca }, {}, 1)
    using serving = await followServingCertificate(settings, authority, 'istiod:15012', silentLogging().scope('test'))
    const roots = readFileSync(files.ca, 'utf8')
    assert.ok(isSameBundle(serving.current.roots, roots + first.pem))
    const told: string[] = []
    serving.subscribe((certificate) => told.push(certificate.roots))
    authority.rootBundle = second.pem
    changed()
    assert.equal(told.length, 1)
    assert.ok(isSameBundle(told[0] ?? '', roots + second.pem))
  })

  test('that do not are refused, as are those that cannot be read', () => {
    writeFileSync(files.key, otherKey)
    assert.throws(() => readServingFiles(files), /tls\.key is not the key of .*tls\.crt/)
    writeFileSync(files.ca, 'nothing')
    assert.throws(() => readServingFiles(files))
    assert.throws(() => readServingFiles({ ...files, cert: join(dir, 'none') }), /ENOENT/)
  })
})
