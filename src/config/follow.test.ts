import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { KubeObject, ObjectKey } from '../api/index.ts'
import type { Informer, ObjectChange } from '../kube/index.ts'
import { silentLogging } from '../observability/index.ts'
import { followInformer } from './follow.ts'

type Thing = KubeObject<{ ok: boolean }>
const thing = (name: string, ok: boolean, labels: Record<string, string> = {}): Thing => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name, namespace: 'ns', labels },
  spec: { ok },
})

function follow(takesBroken = false) {
  let listener: (changes: readonly ObjectChange<Thing>[]) => void = () => {}
  const informer: Informer<Thing> = {
    synced: Promise.resolve(),
    get: () => undefined,
    list: () => [],
    subscribe(next) {
      listener = next
      return () => {}
    },
    [Symbol.asyncDispose]: async () => {},
  }
  const kept = new Map<string, Thing>()
  const errors: string[] = []
  let waves = 0
  followInformer<Thing>({
    resource: { group: '', version: 'v1', kind: 'Thing', plural: 'things', namespaced: true },
    informer,
    sink: {
      set: (object) => void kept.set(object.metadata.name, object),
      delete: ({ name }: ObjectKey) => void kept.delete(name),
    },
    transaction(body) {
      waves += 1
      body()
    },
    takesBroken,
    accepts: ({ metadata }) => metadata.labels?.rev !== 'other',
    problems: ({ spec }) => (spec?.ok === true ? [] : [{ field: 'spec.ok', message: 'expected true' }]),
    log: {
      ...silentLogging().scope('test'),
      error: (message, fields) => void errors.push(`${message}: ${fields?.problems}`),
    },
  })
  return { kept, errors, waves: () => waves, change: (...changes: ObjectChange<Thing>[]) => listener(changes) }
}

describe('a followed kind', () => {
  test('makes one wave of one batch', () => {
    const { kept, waves, change } = follow()
    change({ kind: 'added', object: thing('a', true) }, { kind: 'added', object: thing('b', true) })
    assert.equal(waves(), 1)
    assert.deepEqual([...kept.keys()], ['a', 'b'])
  })

  test('keeps the last valid object while a broken one is there, and reports that once', () => {
    const { kept, errors, change } = follow()
    const good = thing('a', true)
    const bad = thing('a', false)
    change({ kind: 'added', object: good })
    change({ kind: 'updated', object: bad, old: good })
    change({ kind: 'updated', object: bad, old: bad })
    assert.equal(kept.get('a'), good)
    assert.deepEqual(errors, ['an invalid object is not taken; the last valid one stays: spec.ok: expected true'])
    change({ kind: 'deleted', object: bad })
    assert.equal(kept.size, 0)
  })

  test('a broken object that restricts is taken where no valid one was before it', () => {
    const { kept, errors, change } = follow(true)
    const [good, bad] = [thing('a', true), thing('a', false)]
    change({ kind: 'added', object: bad })
    assert.equal(kept.get('a'), bad)
    assert.match(errors[0] ?? '', /restricts more than it may have meant to.*: spec.ok: expected true$/)
    change({ kind: 'updated', object: good, old: bad }, { kind: 'updated', object: bad, old: good })
    assert.equal(kept.get('a'), good)
    change({ kind: 'deleted', object: bad }, { kind: 'added', object: bad })
    assert.equal(kept.get('a'), bad)
  })

  test('a new broken object of another kind is left out', () => {
    const { kept, change } = follow()
    change({ kind: 'added', object: thing('a', false) })
    assert.equal(kept.size, 0)
  })

  test('loses an object that changes to another revision', () => {
    const { kept, change } = follow()
    const ours = thing('a', true)
    change({ kind: 'added', object: ours })
    change({ kind: 'updated', object: thing('a', true, { rev: 'other' }), old: ours })
    assert.equal(kept.size, 0)
  })
})
