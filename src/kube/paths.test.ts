import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resources } from '../api/index.ts'
import { objectPath } from './paths.ts'

test('names cannot lead to another path', () => {
  const path = (namespace: string, name: string) => objectPath(resources.workloadEntries, { namespace, name })
  assert.equal(path('vms', 'a/../b'), '/apis/networking.istio.io/v1/namespaces/vms/workloadentries/a%2F..%2Fb')
  for (const [namespace, name] of [
    ['vms', '..'],
    ['vms', '.'],
    ['..', 'a'],
  ] as const) {
    assert.throws(() => path(namespace, name), /is no name/)
  }
})
