import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { inClusterConnection } from './connection.ts'
import { condition, informerLab, record } from './test-informer.ts'
import { createTransport } from './transport.ts'

describe('an informer whose watch breaks', { timeout: 30_000 }, () => {
  const lab = informerLab()

  test('goes on from the last version after a cut connection, without a new list', async () => {
    const { api } = lab
    api.put('a', 1)
    await using informer = lab.open()
    const seen = record(informer)
    await informer.synced
    await lab.whenWatched()
    api.put('a', 2)
    await seen.until(() => informer.get({ name: 'a' })?.spec?.value === 2)
    api.cut()
    api.remove('a')
    api.put('c', 1)
    await seen.until(() => informer.get({ name: 'c' }) !== undefined)
    assert.deepEqual(seen.all(), ['added a=1', 'updated a=2', 'deleted a=2', 'added c=1'])
    assert.equal(api.requests.filter((request) => request === 'list').length, 1)
  })

  for (const inStream of [false, true]) {
    test(`lists again after 410 ${inStream ? 'in the stream' : 'as the answer'} and notices deletions and replacements`, async () => {
      const { api } = lab
      for (const name of ['stays', 'goes', 'replaced']) api.put(name, 1)
      await using informer = lab.open()
      const seen = record(informer)
      await informer.synced
      await lab.whenWatched()
      await api.stop()
      api.remove('goes')
      api.remove('replaced')
      api.put('replaced', 2, 'another')
      api.put('new', 1)
      api.compact({ inStream })
      await api.start()
      await seen.until(() => informer.get({ name: 'new' }) !== undefined)
      assert.deepEqual(seen.all().slice(3).sort(), [
        'added new=1',
        'added replaced=2',
        'deleted goes=1',
        'deleted replaced=1',
      ])
    })
  }

  test('starts from a bookmark when the server restarts after it forgot older versions', async () => {
    const { api } = lab
    await using informer = lab.open()
    await informer.synced
    await lab.whenWatched()
    api.compact()
    api.bookmark()
    api.put('x', 1)
    const seen = record(informer)
    await seen.until(() => informer.get({ name: 'x' }) !== undefined)
    await api.stop()
    await api.start()
    await lab.whenWatched()
    assert.equal(api.requests.filter((request) => request === 'list').length, 1)
  })

  test('is not disturbed by watches that end at once or by a server that fails for a while', async () => {
    const { api } = lab
    api.put('a', 1)
    await using informer = lab.open()
    const seen = record(informer)
    await informer.synced
    for (let i = 0; i < 5; i += 1) {
      await lab.whenWatched()
      api.endWatches()
      await condition(() => api.watchers === 0)
    }
    api.failWith = 503
    api.cut()
    await condition(() => api.watchers === 0)
    api.remove('a')
    api.failWith = undefined
    await seen.until(() => informer.get({ name: 'a' }) === undefined)
    assert.deepEqual(seen.all(), ['added a=1', 'deleted a=1'])
  })

  test('goes on when the token of its pod is replaced, refused before the new one is there or not', async () => {
    const { api } = lab
    const volume = mkdtempSync(join(tmpdir(), 'lateen-informer-'))
    writeFileSync(join(volume, 'token'), 'good')
    writeFileSync(join(volume, 'ca.crt'), lab.pki.roots)
    const env = { KUBERNETES_SERVICE_HOST: 'localhost', KUBERNETES_SERVICE_PORT: String(api.port) }
    const rotating = createTransport(inClusterConnection(env, volume), 'test')
    try {
      await using informer = lab.open({ transport: rotating })
      const seen = record(informer)
      await informer.synced
      await lab.whenWatched()
      api.token = 'renewed'
      api.put('during', 1)
      // The watch that is open goes on with the credentials it began with.
      await seen.until(() => informer.list().length === 1)
      api.cut()
      await condition(() => api.watchers === 0)
      api.put('after', 1)
      writeFileSync(join(volume, 'token'), 'renewed')
      await seen.until(() => informer.list().length === 2)
      assert.deepEqual(seen.all(), ['added during=1', 'added after=1'])
    } finally {
      rotating.close()
      rmSync(volume, { recursive: true })
    }
  })

  test('lists again from a server that was restored to an earlier state', async () => {
    const { api } = lab
    for (const name of ['a', 'b', 'c']) api.put(name, 1)
    await using informer = lab.open()
    const seen = record(informer)
    await informer.synced
    await lab.whenWatched()
    api.restore(['a'])
    api.endWatches()
    await seen.until(() => informer.list().length === 1)
    assert.deepEqual(seen.all().slice(3).sort(), ['deleted b=1', 'deleted c=1'])
    api.put('d', 1)
    await seen.until(() => informer.list().length === 2)
  })

  test('whatever breaks, its objects become those of the server, and each object’s changes make sense', async () => {
    const { api } = lab
    await using informer = lab.open()
    const seen = record(informer)
    await informer.synced
    let random = 12_345
    const next = (below: number): number => {
      random = (random * 1_103_515_245 + 12_345) % 2_147_483_648
      return Math.floor((random / 2_147_483_648) * below)
    }
    for (let step = 0; step < 300; step += 1) {
      const name = `w${next(12)}`
      if (next(3) === 0) api.remove(name)
      else api.put(name, step, next(8) === 0 ? `uid-${step}` : undefined)
      const trouble = next(30)
      if (trouble === 0) api.cut()
      if (trouble === 1) api.compact({ inStream: next(2) === 0 })
      if (trouble === 2) api.endWatches()
      if (trouble === 3) {
        await api.stop()
        await api.start()
      }
      if (next(4) === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    api.put('last', 1)
    await seen.until(() => informer.get({ name: 'last' }) !== undefined)
    assert.deepEqual(
      informer
        .list()
        .map(({ metadata }) => metadata.name)
        .sort(),
      api.names(),
    )
    const present = new Set<string>()
    for (const text of seen.all()) {
      const [kind, name = ''] = text.split(/[ =]/)
      assert.equal(present.has(name), kind !== 'added', text)
      if (kind === 'added') present.add(name)
      if (kind === 'deleted') present.delete(name)
    }
    assert.deepEqual([...present].sort(), api.names())
  })
})
