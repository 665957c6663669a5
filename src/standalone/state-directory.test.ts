import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { holdsMesh, prepareStateDirectory, refuseFile } from './state-directory.ts'

const root = mkdtempSync(join(tmpdir(), 'lateen-state-directory-'))
after(() => rmSync(root, { recursive: true }))

const refused = (message: RegExp) => ({ name: 'StandaloneError', message })

test('a directory that is not there is made, with those above it', async () => {
  const path = join(root, 'a', 'b', 'c')
  await prepareStateDirectory(path)
  assert.ok(existsSync(path))
  assert.equal(holdsMesh(path), false)
})

test('a directory with other files is taken, one with files that down would remove is not', async () => {
  const path = join(root, 'project')
  mkdirSync(path)
  writeFileSync(join(path, 'README'), '')
  await prepareStateDirectory(path)
  mkdirSync(join(path, 'bin'))
  mkdirSync(join(path, 'logs'))
  await assert.rejects(
    prepareStateDirectory(path),
    refused(/project holds bin, logs, .* give a --state-dir that is new/),
  )
})

for (const mark of ['up.json', 'port.json', 'apiserver.db', 'network.json', 'logs/up.log']) {
  test(`a directory with ${mark} is a mesh's`, async () => {
    const path = join(root, mark.replaceAll('/', '-'))
    for (const name of ['bin', 'logs']) mkdirSync(join(path, name), { recursive: true })
    writeFileSync(join(path, mark), '')
    await prepareStateDirectory(path)
    assert.ok(holdsMesh(path))
  })
}

test('a file, and a path below one, are no state directories', async () => {
  const file = join(root, 'file')
  writeFileSync(file, '')
  for (const path of [file, join(file, 'below')]) {
    for (const look of [prepareStateDirectory, refuseFile]) {
      await assert.rejects(look(path), refused(/file.* is not a directory, or lies below a file: give a --state-dir/))
    }
  }
})

test('where nothing can be made, the reason is told', { timeout: 10_000 }, async () => {
  await assert.rejects(
    prepareStateDirectory('/proc/state'),
    refused(/^\/proc\/state cannot be made or written \(ENOENT/),
  )
})
