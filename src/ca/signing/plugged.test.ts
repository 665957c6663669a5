import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeCa, type TestCa } from '../../../test/support/ca.ts'
import { createAuthority, type SelfAuthority } from './authority.ts'
import { MaterialError } from './errors.ts'
import { type CaFiles, caSourceOf, followCaFiles, pluggedMaterial, readCaDirectory } from './plugged.ts'

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
  const notBefore = new Date(Date.now() + 3_600_000)
  write(dir, await makeCa({ name: 'soon', issuer: root, notBefore }), root)
  let at = new Date()
  let looks = 0
  const lookedOften = Promise.withResolvers<void>()
  const end = new AbortController()
  const reloaded = Promise.withResolvers<void>()
  const refusals: string[] = []
  const following = followCaFiles(
    {
      ...{ read: () => readCaDirectory(dir), authority, isMultiRoot: false, intervalMs: 10 },
      now: () => {
        looks += 1
        if (looks === 3) lookedOften.resolve()
        return at
      },
      onReload: () => reloaded.resolve(),
      onRefusal: (error) => void refusals.push(String(error)),
    },
    end.signal,
  )
  await lookedOften.promise
  assert.equal(authority.material.certificate.subject, 'O=one')
  at = new Date(notBefore.getTime() + 1_000)
  await reloaded.promise
  end.abort()
  await following
  assert.equal(authority.material.certificate.subject, 'O=soon')
  assert.equal(refusals.length, 1)
  assert.match(refusals[0] ?? '', /O=soon is valid from/)
})

/** Follows files that are read as listed, one after another (an error: cannot be read); resolves with the number of each read that was refused. */
async function refusalsOf(authority: SelfAuthority, reads: readonly (CaFiles | Error)[]): Promise<readonly number[]> {
  const end = new AbortController()
  const refused: number[] = []
  let count = 0
  const read = async (): Promise<CaFiles> => {
    const files = reads[count]
    count += 1
    if (count === reads.length) end.abort()
    if (files instanceof Error || files === undefined) throw files
    return files
  }
  const onRefusal = (): void => void refused.push(count)
  await followCaFiles({ read, authority, isMultiRoot: false, intervalMs: 1, onRefusal }, end.signal)
  return refused
}

test('a refusal is told once, and again after the files in force were back', async (t) => {
  const { dir, authority } = await world(t)
  const good = await readCaDirectory(dir)
  const [stranger, another] = [await makeCa({ name: 'stranger' }), await makeCa({ name: 'another' })]
  write(dir, stranger, stranger)
  const bad = await readCaDirectory(dir)
  write(dir, another, another)
  const worse = await readCaDirectory(dir)
  const broken = new Error('EIO')
  assert.deepEqual(await refusalsOf(authority, [good, bad, bad, good, good, bad, bad]), [2, 6])
  assert.deepEqual(await refusalsOf(authority, [good, broken, broken, good, broken, broken]), [2, 5])
  assert.deepEqual(await refusalsOf(authority, [bad, worse, worse]), [1, 2])
  assert.deepEqual(await refusalsOf(authority, [bad, broken, broken, bad]), [1, 2, 4])
})
