import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { KubeObject } from '../../../api/index.ts'
import { Store } from './store.ts'

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'lateen-store-'))
  t.after(() => rmSync(path, { recursive: true }))
  return path
}

function fail(error: unknown): void {
  throw error
}

function configMap(name: string, value = ''): KubeObject & { data: unknown } {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name }, data: { value } }
}

const resource = '/configmaps'

test('a new store reads what the old one wrote, and goes on counting', (t) => {
  const path = join(directory(t), 'db')
  {
    using store = new Store(path, fail)
    store.put(resource, configMap('a', '1'))
    store.put(resource, configMap('b'))
    store.put(resource, configMap('a', '2'))
    store.remove(resource, 'default', 'b')
  }
  using store = new Store(path, fail)
  assert.deepEqual(
    store.list(resource).map((entry) => entry.name),
    ['a'],
  )
  const entry = store.get(resource, 'default', 'a')
  assert.deepEqual((entry?.object as { data?: unknown } | undefined)?.data, { value: '2' })
  assert.ok(store.put(resource, configMap('c')).revision > Number(entry?.revision) + 1)
})

test('a list can be read as it was before later changes', (t) => {
  using store = new Store(join(directory(t), 'db'), fail)
  store.put(resource, configMap('a', '1'))
  store.put(resource, configMap('b', '1'))
  const then = store.revision
  store.put(resource, configMap('a', '2'))
  store.remove(resource, 'default', 'b')
  store.put(resource, configMap('c'))
  store.put(resource, configMap('b', '3'))
  const past = store.listAt(resource, then)?.map((entry) => [entry.name, entry.object as { data?: unknown }])
  assert.deepEqual(
    past?.map(([name, object]) => [name, (object as { data?: unknown }).data]),
    [
      ['a', { value: '1' }],
      ['b', { value: '1' }],
    ],
  )
})

test('after a restart the past is unknown, but the last revision of a resource is not', (t) => {
  const path = join(directory(t), 'db')
  let last = 0
  {
    using store = new Store(path, fail)
    store.put(resource, configMap('a'))
    last = store.put(resource, configMap('b')).revision
    store.put('/secrets', { ...configMap('s'), kind: 'Secret' })
  }
  using store = new Store(path, fail)
  assert.equal(store.listAt(resource, last - 1), undefined)
  assert.equal(store.listAt(resource, last)?.length, 2)
  assert.equal(store.history(resource).positionAfter(last - 1), undefined)
  assert.notEqual(store.history(resource).positionAfter(last), undefined)
})

test('the history is bounded, and tells who comes too late', (t) => {
  using store = new Store(join(directory(t), 'db'), fail)
  const first = store.put(resource, configMap('a')).revision
  const position = store.history(resource).positionAfter(first) ?? -1
  for (let count = 0; count < 9000; count += 1) store.put(resource, configMap('a', String(count)))
  assert.equal(store.history(resource).at(position), 'gone')
  assert.equal(store.history(resource).positionAfter(first), undefined)
  assert.equal(store.listAt(resource, first), undefined)
  assert.notEqual(store.history(resource).positionAfter(store.revision - 10), undefined)
})

test('a listener that throws does not undo the write', (t) => {
  const errors: unknown[] = []
  using store = new Store(join(directory(t), 'db'), (error) => errors.push(error))
  store.onChange(() => {
    throw new Error('listener')
  })
  store.put(resource, configMap('a'))
  assert.equal(store.list(resource).length, 1)
  assert.equal(errors.length, 1)
})

test('a state file serves one store at a time', (t) => {
  const path = join(directory(t), 'db')
  using _store = new Store(path, fail)
  assert.throws(() => new Store(path, fail), /in use by another API server/)
})

test('only its owner may read what is stored, also of a file that was readable before', (t) => {
  const folder = directory(t)
  const path = join(folder, 'db')
  writeFileSync(path, '')
  chmodSync(path, 0o644)
  using store = new Store(path, fail)
  store.put(resource, configMap('a'))
  const modes = readdirSync(folder).map((name) => [name, (statSync(join(folder, name)).mode & 0o777).toString(8)])
  assert.deepEqual(modes.sort(), [
    ['db', '600'],
    ['db-wal', '600'],
  ])
})
