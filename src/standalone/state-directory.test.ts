import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { removeState } from './clean.ts'
import { writeProgress } from './instance-lock.ts'
import { instancePaths } from './paths.ts'
import { holdsMesh, prepareStateDirectory, refuseFile, stateMark } from './state-directory.ts'

const root = mkdtempSync(join(tmpdir(), 'lateen-state-directory-'))
after(() => rmSync(root, { recursive: true }))

const refused = (message: RegExp) => ({ name: 'StandaloneError', message })

test('a directory that is not there is made, with those above it, and is a mesh’s from then on', async () => {
  const path = join(root, 'a', 'b', 'c')
  assert.equal(await holdsMesh(path), false)
  await Promise.all([prepareStateDirectory(path), prepareStateDirectory(path)])
  assert.deepEqual([readdirSync(path), await holdsMesh(path)], [[stateMark], true])
})

test('a mesh that ended after its first record is one: the next up takes it', async () => {
  const path = join(root, 'early')
  await prepareStateDirectory(path)
  await writeProgress(path, 'starting')
  await prepareStateDirectory(path)
  assert.ok(await holdsMesh(path))
})

test('a directory with other files is taken, one with files that down would remove is not', async () => {
  const path = join(root, 'project')
  mkdirSync(path)
  writeFileSync(join(path, 'README'), '')
  await prepareStateDirectory(path)
  await removeState(instancePaths(path))
  assert.deepEqual(readdirSync(path), ['README'])
  mkdirSync(join(path, 'bin'))
  mkdirSync(join(path, 'logs'))
  await assert.rejects(
    prepareStateDirectory(path),
    refused(/project holds bin, logs, .* give a --state-dir that is new/),
  )
})

for (const [name, content] of [
  ['logs/up.log', 'docker compose up'],
  ['port.json', '6443'],
  ['apiserver.db', ''],
  ['progress.json', '{"progress":"starting"}'],
  ['up.json', '{"pid":1}'],
  ['up.json', ''],
  ['network.json', '{"bridge":"br0"}'],
  ['network.json', '[]'],
] as const) {
  test(`${name} of "${content}" makes no directory a mesh's: up takes none that holds it`, async (t) => {
    const path = join(root, 'of others')
    t.after(() => rmSync(path, { recursive: true }))
    for (const directory of ['bin', 'logs']) mkdirSync(join(path, directory), { recursive: true })
    writeFileSync(join(path, name), content)
    await assert.rejects(prepareStateDirectory(path), refused(/of others holds (apiserver.db, )?bin, logs/))
    assert.equal(await holdsMesh(path), false)
    assert.equal(existsSync(join(path, stateMark)), false)
  })
}

for (const [name, content] of [
  ['up.json', { pid: 1, startTicks: '1', progress: 'running' }],
  ['network.json', { instance: '0a1b2c', bridge: 'b', clusterCidr: '10.0.0.0/16', serviceCidr: '10.1.0.0/16' }],
] as const) {
  test(`a directory with the ${name} of a mesh of an earlier version is a mesh's, and is marked`, async () => {
    const path = join(root, `earlier ${name}`)
    mkdirSync(join(path, 'bin'), { recursive: true })
    writeFileSync(join(path, name), JSON.stringify(content))
    assert.ok(await holdsMesh(path))
    await prepareStateDirectory(path)
    assert.ok(existsSync(join(path, stateMark)))
    await removeState(instancePaths(path))
    assert.equal(existsSync(path), false)
  })
}

test('a directory is no record', async () => {
  const path = join(root, 'directories')
  for (const name of ['up.json', 'network.json']) mkdirSync(join(path, name), { recursive: true })
  assert.equal(await holdsMesh(path), false)
})

test('the mark goes last: what could not be removed is removed by the next down', {
  skip: process.getuid?.() !== 0 && 'mounts: needs root',
}, async () => {
  const path = join(root, 'mounted')
  await prepareStateDirectory(path)
  for (const name of ['bin', 'logs', 'pki']) mkdirSync(join(path, name))
  execFileSync('mount', ['-t', 'tmpfs', 'held', join(path, 'logs')])
  await assert.rejects(removeState(instancePaths(path)), { code: 'EBUSY' })
  assert.ok(await holdsMesh(path))
  execFileSync('umount', [join(path, 'logs')])
  await removeState(instancePaths(path))
  assert.equal(existsSync(path), false)
})

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
