import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeCa, type TestCa } from '../../../test/support/ca.ts'
import { createAuthority } from './authority.ts'
import { MaterialError } from './errors.ts'
import { caSourceOf, followCaFiles, pluggedMaterial, readCaDirectory } from './plugged.ts'

function write(dir: string, signer: TestCa, root: TestCa): void {
  const files = {
    'ca-cert.pem': signer.pem,
    'ca-key.pem': signer.key,
    'root-cert.pem': root.pem,
    'cert-chain.pem': signer.pem,
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text)
}

async function world(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-cacerts-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const root = await makeCa({ name: 'root' })
  const [first, second] = [await makeCa({ name: 'one', issuer: root }), await makeCa({ name: 'two', issuer: root })]
  write(dir, first, root)
  const files = await readCaDirectory(dir)
  const source = caSourceOf(Object.keys(files))
  assert.ok(source.kind === 'plugged')
  const material = pluggedMaterial(files, source.layout, new Date())
  return { dir, root, second, authority: createAuthority({ material, defaultTtlSeconds: 60, maxTtlSeconds: 60 }) }
}

test('a new intermediate under the same root is taken up, another root is not', async (t) => {
  const { dir, root, second, authority } = await world(t)
  const end = new AbortController()
  const reloaded = Promise.withResolvers<void>()
  const refused = Promise.withResolvers<void>()
  const onRefusal = (error: unknown): void => {
    if (error instanceof MaterialError && error.code === 'ROOT_CHANGED') refused.resolve()
  }
  const options = { read: () => readCaDirectory(dir), authority, isMultiRoot: false, intervalMs: 10 }
  const following = followCaFiles({ ...options, onReload: () => reloaded.resolve(), onRefusal }, end.signal)
  write(dir, second, root)
  // Files written one by one may be seen in between, and refused; the complete set then follows.
  await reloaded.promise
  assert.equal(authority.material.certificate.subject, 'O=two')
  const stranger = await makeCa({ name: 'stranger' })
  write(dir, stranger, stranger)
  await refused.promise
  assert.equal(authority.material.certificate.subject, 'O=two')
  end.abort()
  await following
})

test('no directory is no files', async () => {
  assert.deepEqual(await readCaDirectory('/nonexistent/cacerts'), {})
})

test('files that are not valid yet are taken up when they are, and refused once until then', async (t) => {
  const { dir, root, authority } = await world(t)
  const soon = await makeCa({ name: 'soon', issuer: root, notBefore: new Date(Date.now() + 2_000) })
  write(dir, soon, root)
  const end = new AbortController()
  const reloaded = Promise.withResolvers<void>()
  const refusals: string[] = []
  const following = followCaFiles(
    {
      ...{ read: () => readCaDirectory(dir), authority, isMultiRoot: false, intervalMs: 10 },
      onReload: () => reloaded.resolve(),
      onRefusal: (error) => void refusals.push(String(error)),
    },
    end.signal,
  )
  await reloaded.promise
  end.abort()
  await following
  assert.equal(authority.material.certificate.subject, 'O=soon')
  assert.equal(refusals.length, 1)
  assert.match(refusals[0] ?? '', /O=soon is valid from/)
})
