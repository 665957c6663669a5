import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeSelectorTerm, PodSpec } from 'kubernetes-types/core/v1.js'
import { podSelectsNode } from './node-selection.ts'

const node = { metadata: { name: 'n1', labels: { zone: 'a', cores: '8' } } }

function required(...terms: NodeSelectorTerm[]): PodSpec {
  return {
    containers: [],
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } },
  }
}
const expression = (key: string, operator: string, ...values: string[]) => ({
  matchExpressions: [{ key, operator, values }],
})

const choices: readonly [what: string, spec: PodSpec | undefined, expected: boolean][] = [
  ['asks for nothing', undefined, true],
  ['a label that is there', { containers: [], nodeSelector: { zone: 'a' } }, true],
  ['another label', { containers: [], nodeSelector: { zone: 'b' } }, false],
  ['one of several terms', required(expression('zone', 'In', 'b'), expression('zone', 'NotIn', 'b')), true],
  ['a term without content matches nothing', required({}), false],
  ['numbers', required(expression('cores', 'Gt', '4')), true],
  ['numbers the other way', required(expression('cores', 'Lt', '4')), false],
  ['an unknown operator', required(expression('zone', 'Like', 'a')), false],
  ['the name', required({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] }), true],
  ['another field', required({ matchFields: [{ key: 'metadata.uid', operator: 'Exists' }] }), false],
]

for (const [what, spec, expected] of choices) {
  test(`a pod's choice of nodes: ${what}`, () => assert.equal(podSelectsNode(spec, node), expected))
}
