import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labelsForbidden } from './labels.ts'

const labels = (...names: string[]): Record<string, string> => Object.fromEntries(names.map((name) => [name, 'x']))

for (const [label, isForbidden] of [
  ['team', false],
  ['example.com/team', false],
  ['kubernetes.io/hostname', false],
  ['topology.kubernetes.io/zone', false],
  ['node.kubernetes.io/anything', false],
  ['sub.kubelet.kubernetes.io/anything', false],
  ['kubernetes.io/anything', true],
  ['k8s.io/anything', true],
  ['node-role.kubernetes.io/control-plane', true],
  ['node-restriction.kubernetes.io/tier', true],
  ['example.node-restriction.kubernetes.io/tier', true],
  ['notkubernetes.io/anything', false],
] as const) {
  test(`a node ${isForbidden ? 'may not' : 'may'} set, change and remove ${label}`, () => {
    const expected = isForbidden ? [label] : []
    assert.deepEqual(labelsForbidden(labels(label)), expected)
    assert.deepEqual(labelsForbidden({ [label]: 'y' }, labels(label)), expected)
    assert.deepEqual(labelsForbidden({}, labels(label)), expected)
    assert.deepEqual(labelsForbidden(labels(label), labels(label)), [])
  })
}
