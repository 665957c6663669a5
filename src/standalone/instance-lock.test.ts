import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { readUpRecord, runningUp, watchRemoval, writeProgress, writeUpRecord } from './instance-lock.ts'

function directory(t: { after(run: () => void): void }): string {
  const path = mkdtempSync(join(tmpdir(), 'lateen-lock-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

test('the record says which process it is, and how far', async (t) => {
  const stateDir = directory(t)
  assert.equal(await readUpRecord(stateDir), undefined)
  await writeUpRecord(stateDir)
  assert.deepEqual(await runningUp(stateDir), await readUpRecord(stateDir))
  const begun = await readUpRecord(stateDir)
  assert.deepEqual([begun?.pid, begun?.progress], [process.pid, 'starting'])
  await writeProgress(stateDir, 'failed', 'why')
  assert.deepEqual(await readUpRecord(stateDir), { ...begun, progress: 'failed', message: 'why' })
})

test('the record of one that starts anew does not keep the end of the one before', async (t) => {
  const stateDir = directory(t)
  await writeUpRecord(stateDir)
  await writeProgress(stateDir, 'failed', 'why')
  await writeUpRecord(stateDir)
  const record = await readUpRecord(stateDir)
  assert.deepEqual([record?.progress, record?.message], ['starting', undefined])
})

test('a removal is noticed, also when a step is recorded in the same moment', async (t) => {
  const stateDir = directory(t)
  await writeUpRecord(stateDir)
  using removal = watchRemoval(stateDir)
  removal.look()
  assert.equal(removal.signal.aborted, false)
  rmSync(stateDir, { recursive: true })
  await writeProgress(stateDir, 'running')
  assert.deepEqual(readdirSync(stateDir), ['progress.json'])
  removal.look()
  assert.match(String(removal.signal.reason), /was removed while the mesh ran/)
})
