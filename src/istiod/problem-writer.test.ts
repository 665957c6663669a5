import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type KubeObject, resources } from '../api/index.ts'
import type { ObjectProblems } from '../config/index.ts'
import { nextConditions } from './problem-writer.ts'

const object = (conditions: object[] = []): KubeObject => ({
  apiVersion: 'security.istio.io/v1',
  kind: 'PeerAuthentication',
  metadata: { name: 'a', namespace: 'ns', generation: 2 },
  status: { conditions },
})
const problems: ObjectProblems = {
  resource: resources.peerAuthentications,
  object: object(),
  problems: [{ field: 'spec.mtls.mode', message: 'expected STRICT' }],
  served: 'the last valid one',
}
const now = () => 'now'
const invalid = {
  type: 'Valid',
  status: 'False',
  reason: 'Invalid',
  message: 'spec.mtls.mode: expected STRICT',
  lastTransitionTime: 'now',
  observedGeneration: 2,
}

describe('the condition of an invalid object', () => {
  test('is added beside those of others', () => {
    const other = { type: 'Other', status: 'True' }
    assert.deepEqual(nextConditions(object([other]), problems, now), [other, invalid])
  })
  test('is not written again', () => {
    assert.equal(nextConditions(object([invalid]), problems, now), undefined)
  })
  test('keeps its time while it stays invalid', () => {
    const old = { ...invalid, message: 'other', lastTransitionTime: 'before' }
    assert.deepEqual(nextConditions(object([old]), problems, now), [{ ...invalid, lastTransitionTime: 'before' }])
  })
  test('goes when the object is mended', () => {
    assert.deepEqual(nextConditions(object([invalid]), undefined, now), [])
    assert.equal(nextConditions(object(), undefined, now), undefined)
  })
})
