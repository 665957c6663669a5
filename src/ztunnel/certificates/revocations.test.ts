import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeCa, makeCrl, makeLeaf } from '../../../test/support/ca.ts'
import { createVirtualClock } from '../../../test/support/virtual-clock.ts'
import { openRevocations } from './revocations.ts'

async function world(t: TestContext, whenInvalid: 'open' | 'closed' = 'open', content?: string) {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-crl-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const path = join(dir, 'ca-crl.pem')
  if (content !== undefined) writeFileSync(path, content)
  const warnings: string[] = []
  const clock = createVirtualClock()
  const revocations = await openRevocations({ path, whenInvalid, clock, warn: (text) => void warnings.push(text) })
  t.after(() => revocations.close())
  const ca = await makeCa({ name: 'root' })
  const leaf = new X509Certificate((await makeLeaf(ca, ['spiffe://t/ns/a/sa/b'])).pem)
  const check = () => revocations.check([leaf], [new X509Certificate(ca.pem)]).kind
  return { path, revocations, warnings, ca, leaf, check, clock }
}

test('an absent file revokes nothing, and one that appears is taken up', async (t) => {
  const { path, revocations, ca, leaf, check, clock } = await world(t)
  assert.equal(check(), 'good')
  let changes = 0
  revocations.subscribe(() => {
    changes += 1
  })
  writeFileSync(path, await makeCrl(ca, [leaf.serialNumber]))
  await revocations.reload()
  assert.equal(check(), 'revoked')
  assert.equal(changes, 1)
  await revocations.reload()
  assert.equal(changes, 1)
  writeFileSync(path, 'broken')
  await revocations.reload()
  assert.equal(check(), 'revoked')
  assert.equal(revocations.state, 'enforcing')
  revocations.close()
  assert.equal(clock.pending, 0)
})

test('a file that is empty for the moment in which it is written lets nobody through', async (t) => {
  const { path, revocations, ca, leaf, check } = await world(t)
  const list = await makeCrl(ca, [leaf.serialNumber])
  writeFileSync(path, list)
  await revocations.reload()
  for (const empty of [() => writeFileSync(path, ''), () => rmSync(path)]) {
    empty()
    await revocations.reload()
    assert.equal(check(), 'revoked')
    writeFileSync(path, list)
    await revocations.reload()
    assert.equal(check(), 'revoked')
  }
  writeFileSync(path, '')
  await revocations.reload()
  await revocations.reload()
  assert.equal(check(), 'good')
  assert.equal(revocations.revoked, 0)
})

test('a file that was never a list lets all pass or none, and is told of', async (t) => {
  const open = await world(t, 'open', 'broken')
  assert.equal(open.revocations.state, 'invalid')
  assert.equal(open.check(), 'good')
  assert.equal(open.warnings.length, 1)
  const closed = await world(t, 'closed', 'broken')
  assert.equal(closed.check(), 'unknown')
  writeFileSync(closed.path, await makeCrl(closed.ca, []))
  await closed.revocations.reload()
  assert.equal(closed.check(), 'good')
  assert.equal(closed.revocations.state, 'enforcing')
})
