import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { writeFileAtomic } from './files.ts'

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'lateen-files-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

test('a file is replaced as a whole, with its directories, and nothing else stays', async (t) => {
  const path = join(directory(t), 'a/b/file')
  await writeFileAtomic(path, 'one')
  await writeFileAtomic(path, 'two')
  assert.equal(readFileSync(path, 'utf8'), 'two')
  assert.deepEqual(readdirSync(join(path, '..')), ['file'])
})

test('it is written also when its directory is removed in the same moment', async (t) => {
  const above = join(directory(t), 'state')
  const remove = () => rm(above, { recursive: true, force: true, maxRetries: 100, retryDelay: 1 })
  for (let nth = 0; nth < 300; nth += 1) {
    await Promise.all([writeFileAtomic(join(above, 'file'), String(nth)), remove(), remove()])
  }
})

test('what cannot be written is told, and leaves nothing', async (t) => {
  const path = directory(t)
  writeFileSync(join(path, 'file'), '')
  await assert.rejects(writeFileAtomic(join(path, 'file/below'), ''), { code: /ENOTDIR|EEXIST/ })
  await assert.rejects(writeFileAtomic(path, ''), { code: /EISDIR|ENOTEMPTY|EEXIST/ })
  assert.deepEqual(readdirSync(path), ['file'])
})
