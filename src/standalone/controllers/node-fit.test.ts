import assert from 'node:assert/strict'
import { test } from 'node:test'
import { daemonFits, nodeFits, refusalsText } from './node-fit.ts'
import type { Node, Pod } from './objects.ts'

const ready = [{ type: 'Ready', status: 'True' }]
const node = (spec: Node['spec'] = {}, labels: Record<string, string> = {}, conditions = ready): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n1', labels },
  spec,
  status: { conditions },
})
const pod = (spec: object = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'a' },
  spec: { containers: [{ name: 'c', image: 'host' }], ...spec },
})
const hostPort = { containers: [{ name: 'c', image: 'host', ports: [{ containerPort: 80, hostPort: 80 }] }] }
const affinity = (operator: string, values?: string[]) => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: 'disk', operator, ...(values === undefined ? {} : { values }) }] },
        ],
      },
    },
  },
})
const taint = { key: 'role', value: 'db', effect: 'NoSchedule' }

const cases: readonly (readonly [string, Node, Pod, readonly Pod[], string | undefined])[] = [
  ['a ready node without demands', node(), pod(), [], undefined],
  ['a node that is not ready', node({}, {}, []), pod(), [], 'node(s) were not ready'],
  ['a closed node', node({ unschedulable: true }), pod(), [], 'node(s) were unschedulable'],
  [
    'a label that is missing',
    node(),
    pod({ nodeSelector: { disk: 'fast' } }),
    [],
    "node(s) didn't match Pod's node affinity/selector",
  ],
  ['a label that is there', node({}, { disk: 'fast' }), pod({ nodeSelector: { disk: 'fast' } }), [], undefined],
  ['affinity In', node({}, { disk: 'fast' }), pod(affinity('In', ['fast', 'slow'])), [], undefined],
  [
    'affinity NotIn',
    node({}, { disk: 'fast' }),
    pod(affinity('NotIn', ['fast'])),
    [],
    "node(s) didn't match Pod's node affinity/selector",
  ],
  ['affinity DoesNotExist', node(), pod(affinity('DoesNotExist')), [], undefined],
  ['a taint', node({ taints: [taint] }), pod(), [], 'node(s) had untolerated taint(s)'],
  [
    'a tolerated taint',
    node({ taints: [taint] }),
    pod({ tolerations: [{ key: 'role', value: 'db', effect: 'NoSchedule' }] }),
    [],
    undefined,
  ],
  ['everything tolerated', node({ taints: [taint] }), pod({ tolerations: [{ operator: 'Exists' }] }), [], undefined],
  ['a taint that only prefers', node({ taints: [{ ...taint, effect: 'PreferNoSchedule' }] }), pod(), [], undefined],
  [
    'a host port in use',
    node(),
    pod(hostPort),
    [pod(hostPort)],
    "node(s) didn't have free ports for the requested pod ports",
  ],
]
for (const [name, target, wanted, others, refusal] of cases) {
  test(name, () => assert.equal(nodeFits(target, wanted, others), refusal))
}

test('daemons run on closed nodes that are not ready, but not against other taints', () => {
  const notReady = { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }
  assert.equal(daemonFits(node({ unschedulable: true, taints: [notReady] }, {}, []), pod().spec), true)
  assert.equal(daemonFits(node({ taints: [taint] }), pod().spec), false)
})

test('the reasons are counted', () => {
  assert.equal(
    refusalsText(
      3,
      new Map([
        ['node(s) were not ready', 2],
        ['node(s) were unschedulable', 1],
      ]),
    ),
    '0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) were not ready.',
  )
  assert.equal(refusalsText(0, new Map()), 'no nodes available to schedule pods')
})
