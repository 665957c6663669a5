import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { createTestPki, type TestPki } from '../../test/support/test-pki.ts'
import type { KubeObject, Resource } from '../api/index.ts'
import { silentLogging } from '../observability/index.ts'
import { type Connection, inClusterConnection } from './connection.ts'
import { createInformer } from './informer.ts'
import { startTestApi, type TestApi } from './test-api.ts'
import { createTransport, type Transport } from './transport.ts'
import type { Informer, ObjectChange } from './types.ts'
import { watchOnce } from './watch.ts'

type Widget = KubeObject<{ value: number }>

const widgets: Resource = { group: 'example.com', version: 'v1', kind: 'Widget', plural: 'widgets', namespaced: false }
const log = silentLogging().scope('test')
const times = {
  firstRetryMs: 5,
  mostRetryMs: 20,
  mostRelistMs: 40,
  missingKindMs: 100,
  mostMissingRetryMs: 20,
  sameComplaintMs: 60_000,
}

describe('an informer', { timeout: 30_000 }, () => {
  let pki: TestPki
  let api: TestApi
  let transport: Transport
  before(async () => {
    pki = await createTestPki()
  })
  beforeEach(async () => {
    await api?.stop()
    transport?.close()
    api = await startTestApi(pki)
    transport = createTransport(connectionTo(api, pki), 'test')
  })
  after(async () => {
    transport.close()
    await api.stop()
  })

  test('delivers the list as one batch, then changes; a late listener gets what is known', async () => {
    api.put('a', 1)
    api.put('b', 1)
    await using informer = open()
    const seen = record(informer)
    await informer.synced
    assert.deepEqual(seen.batches, [['added a=1', 'added b=1']])
    assert.equal(informer.get({ name: 'a' })?.kind, 'Widget')
    api.put('a', 2)
    api.remove('b')
    await seen.until(() => informer.get({ name: 'b' }) === undefined)
    assert.deepEqual(seen.all().slice(2), ['updated a=2', 'deleted b=1'])
    assert.deepEqual(record(informer).batches, [['added a=2']])
  })

  test('reads lists of many pages', async () => {
    for (let i = 0; i < 1_234; i += 1) api.put(`w${i}`, i)
    await using informer = open()
    await informer.synced
    assert.equal(informer.list().length, 1_234)
    assert.equal(api.requests.filter((request) => request === 'list').length, 3)
  })

  test('goes on from the last version after a cut connection, without a new list', async () => {
    api.put('a', 1)
    await using informer = open()
    const seen = record(informer)
    await informer.synced
    await whenWatched()
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
      for (const name of ['stays', 'goes', 'replaced']) api.put(name, 1)
      await using informer = open()
      const seen = record(informer)
      await informer.synced
      await whenWatched()
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
    await using informer = open()
    await informer.synced
    await whenWatched()
    api.compact()
    api.bookmark()
    api.put('x', 1)
    const seen = record(informer)
    await seen.until(() => informer.get({ name: 'x' }) !== undefined)
    await api.stop()
    await api.start()
    await whenWatched()
    assert.equal(api.requests.filter((request) => request === 'list').length, 1)
  })

  test('is not disturbed by watches that end at once or by a server that fails for a while', async () => {
    api.put('a', 1)
    await using informer = open()
    const seen = record(informer)
    await informer.synced
    for (let i = 0; i < 5; i += 1) {
      await whenWatched()
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
    const volume = mkdtempSync(join(tmpdir(), 'lateen-informer-'))
    writeFileSync(join(volume, 'token'), 'good')
    writeFileSync(join(volume, 'ca.crt'), pki.roots)
    const env = { KUBERNETES_SERVICE_HOST: 'localhost', KUBERNETES_SERVICE_PORT: String(api.port) }
    const rotating = createTransport(inClusterConnection(env, volume), 'test')
    try {
      await using informer = createInformer<Widget>(rotating, widgets, {}, log, times)
      const seen = record(informer)
      await informer.synced
      await whenWatched()
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
    for (const name of ['a', 'b', 'c']) api.put(name, 1)
    await using informer = open()
    const seen = record(informer)
    await informer.synced
    await whenWatched()
    api.restore(['a'])
    api.endWatches()
    await seen.until(() => informer.list().length === 1)
    assert.deepEqual(seen.all().slice(3).sort(), ['deleted b=1', 'deleted c=1'])
    api.put('d', 1)
    await seen.until(() => informer.list().length === 2)
  })

  test('gives up a version that the server fails on again and again, and lists', async () => {
    api.put('a', 1)
    await using informer = open()
    await informer.synced
    await whenWatched()
    api.refuseWatches = { code: 500, message: 'etcd is not well' }
    api.cut()
    await condition(() => api.requests.filter((request) => request === 'list').length >= 2)
    const between = api.requests.slice(1, api.requests.lastIndexOf('list'))
    // The one that was cut, the tries that count, and one more where the cut was no answer of the server.
    assert.ok(between.length >= 5 && between.length <= 7, between.join())
    api.refuseWatches = undefined
    await whenWatched()
  })

  test('goes on where it was when a server refuses it for a moment after its start', async () => {
    api.put('a', 1)
    await using informer = open()
    await informer.synced
    api.refuseWatches = { code: 403, message: 'widgets may not be watched' }
    api.cut()
    const watches = () => api.requests.filter((request) => request.startsWith('watch')).length
    const before = watches()
    await condition(() => watches() >= before + 2)
    api.refuseWatches = undefined
    api.put('b', 2)
    await condition(() => informer.list().length === 2)
    assert.equal(api.requests.filter((request) => request === 'list').length, 1)
  })

  test('is told less and less when it may list but not watch', async () => {
    api.put('a', 1)
    api.refuseWatches = { code: 403, message: 'widgets may not be watched' }
    const warnings: string[] = []
    const told = {
      debug: () => {},
      warn: (_message: string, fields = {}) => void warnings.push(JSON.stringify(fields)),
    }
    await using informer = createInformer<Widget>(transport, widgets, {}, told, { ...times, mostRelistMs: 10_000 })
    await informer.synced
    const lists = () => api.requests.filter((request) => request === 'list').length
    await condition(() => lists() >= 4)
    const startedAt = Date.now()
    await condition(() => lists() >= 6)
    assert.ok(Date.now() - startedAt >= 5 * (8 + 16) * 0.75, 'waits double')
    assert.equal(warnings.length, 1)
    assert.match(warnings[0] ?? '', /widgets may not be watched/)
  })

  for (const way of ['status', 'header'] as const) {
    test(`leaves a server alone as long as it asks for, by the ${way} of its answer`, async () => {
      api.put('a', 1)
      api.failWith = 429
      api.retryAfterSeconds = 1
      api.retryAfterIn = way
      await using informer = open()
      const startedAt = Date.now()
      await condition(() => api.requests.length + api.refused >= 1)
      api.failWith = undefined
      await informer.synced
      assert.ok(Date.now() - startedAt >= 900)
    })
  }

  test('a watch that is never answered does not hold it up', async () => {
    api.put('a', 1)
    api.silentOn = 'watch'
    const path = '/apis/example.com/v1/widgets?watch=true&resourceVersion=1'
    const watching = watchOnce(
      transport,
      () => path,
      () => {},
      AbortSignal.timeout(10_000),
      50,
    )
    await assert.rejects(watching, /no answer within 50 ms/)
  })

  for (const silent of ['list', 'half'] as const) {
    test(`closing ends a list that the server does not ${silent === 'list' ? 'answer' : 'finish'}`, async () => {
      api.silentOn = silent
      const informer = open()
      await condition(() => api.requests.includes('list'))
      await informer[Symbol.asyncDispose]()
      await assert.rejects(informer.synced, /closed/)
    })
  }

  test('reads ten thousand objects in pages and lets others work meanwhile', async () => {
    for (let i = 0; i < 10_000; i += 1) api.put(`w${i}`, i)
    let turns = 0
    const turning = setInterval(() => (turns += 1), 1)
    await using informer = open()
    await informer.synced
    clearInterval(turning)
    assert.equal(informer.list().length, 10_000)
    assert.equal(api.requests.filter((request) => request === 'list').length, 20)
    assert.ok(turns >= 20, `${turns} turns`)
  })

  test('waits for a server that is not there yet', async () => {
    await api.stop()
    await using informer = open()
    api.put('a', 1)
    await api.start()
    await informer.synced
    assert.equal(informer.list().length, 1)
  })

  test('counts a kind that the server does not know as empty, and fills it when the kind appears', async () => {
    api.failWith = 404
    await using informer = open()
    await informer.synced
    assert.deepEqual(informer.list(), [])
    const seen = record(informer)
    api.put('a', 1)
    api.failWith = undefined
    await seen.until(() => informer.list().length === 1)
  })

  test('reads a kind that the server has in another version only, and tells it as its own', async () => {
    api.put('a', 1)
    const newer: Resource = { ...widgets, version: 'v3', otherVersions: ['v2', 'v1'] }
    const warnings: string[] = []
    const told = {
      debug: () => {},
      warn: (message: string, fields = {}) => void warnings.push(`${message} ${JSON.stringify(fields)}`),
    }
    await using informer = createInformer<Widget>(transport, newer, {}, told, times)
    await informer.synced
    api.put('b', 2)
    await condition(() => informer.list().length === 2)
    assert.deepEqual(
      informer.list().map(({ apiVersion }) => apiVersion),
      ['example.com/v3', 'example.com/v3'],
    )
    assert.equal(warnings.length, 1)
    assert.match(warnings[0] ?? '', /another version.*"version":"v1","wanted":"v3"/)
  })

  test('keeps its objects when the kind is unknown for a moment only', async () => {
    api.put('a', 1)
    await using informer = open()
    const seen = record(informer)
    await informer.synced
    await whenWatched()
    api.failWith = 404
    const before = api.requests.length
    api.cut()
    await condition(() => api.watchers === 0)
    api.failWith = undefined
    await condition(() => api.requests.length > before)
    await whenWatched()
    assert.deepEqual(seen.all(), ['added a=1'])
  })

  test('a listener that throws does not stop the others', async () => {
    await using informer = open()
    informer.subscribe(() => {
      throw new Error('broken listener')
    })
    const seen = record(informer)
    await informer.synced
    api.put('a', 1)
    await seen.until(() => informer.list().length === 1)
    assert.deepEqual(seen.all(), ['added a=1'])
  })

  test('ends at once when it is closed, synced or not', async () => {
    await api.stop()
    const informer = open()
    await informer[Symbol.asyncDispose]()
    await assert.rejects(informer.synced, /closed/)
    await api.start()
  })

  test('whatever breaks, its objects become those of the server, and each object’s changes make sense', async () => {
    await using informer = open()
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

  function open(): Informer<Widget> {
    return createInformer<Widget>(transport, widgets, {}, log, times)
  }

  async function whenWatched(): Promise<void> {
    await condition(() => api.watchers > 0)
  }
})

function connectionTo(api: TestApi, pki: TestPki, token: () => string = () => 'good'): Connection {
  return {
    server: api.url,
    namespace: 'default',
    insecureSkipTlsVerify: false,
    tlsServerName: undefined,
    tls: async () => ({ ca: pki.roots, cert: undefined, key: undefined }),
    authorization: async () => `Bearer ${token()}`,
  }
}

function record(informer: Informer<Widget>) {
  const batches: string[][] = []
  const looks = new Set<() => void>()
  informer.subscribe((changes: readonly ObjectChange<Widget>[]) => {
    batches.push(changes.map(({ kind, object }) => `${kind} ${object.metadata.name}=${object.spec?.value}`))
    for (const look of looks) look()
  })
  return {
    batches,
    all: () => batches.flat(),
    until: (holds: () => boolean) =>
      new Promise<void>((resolve) => {
        const look = (): void => {
          if (!holds()) return
          looks.delete(look)
          resolve()
        }
        looks.add(look)
        look()
      }),
  }
}

/** Waits for a condition of the server, which tells nobody when it changes. */
async function condition(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2))
}
