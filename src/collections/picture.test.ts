import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGraph } from './index.ts'
import { pictureOf } from './picture.ts'

test('a graph is drawn with what has read what, collections of one family as one', () => {
  const graph = createGraph({ report: (report) => assert.fail(JSON.stringify(report)) })
  const pods = graph.input<number>('inputs/pods')
  const nodes = graph.input<number>('inputs/nodes')
  const odd = graph.derive('pods/odd', pods, (_, value) => (value % 2 === 1 ? value : undefined))
  const sums = graph.derive('sums', odd, (context, value) => value + (context.get(nodes, 'a') ?? 0))
  graph.derive('sums/again', sums, (_, value) => value)
  const before = pictureOf(graph.describe())
  assert.doesNotMatch(before, /inputs_nodes -->/, 'nothing has been read yet')
  pods.set('a', 1)
  assert.equal(
    pictureOf(graph.describe()),
    `flowchart LR
  inputs_nodes[(nodes)]
  inputs_pods[(pods)]
  pods[pods]
  sums[sums]
  inputs_nodes --> sums
  inputs_pods --> pods
  pods --> sums`,
  )
})
