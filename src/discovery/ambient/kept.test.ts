import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod } from './inputs.ts'
import { createKeptFields } from './kept.ts'
import { createTestMesh, make } from './testing.ts'

function bigPod(name: string): Pod {
  const pod = make.pod(
    `ns1/${name}`,
    '10.0.0.1',
    { app: 'a', 'pod-template-hash': 'x' },
    {
      resourceVersion: '7',
      generateName: 'a-x-',
      annotations: { 'ambient.istio.io/redirection': 'enabled', 'example.com/note': 'long' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'a-x', uid: 'r', controller: true }],
      managedFields: [{}],
    },
    {
      volumes: [{ name: 'v' }],
      containers: [
        { name: 'app', image: 'i', env: [{ name: 'A', value: 'b' }], ports: [{ name: 'web', containerPort: 80 }] },
      ],
      initContainers: [
        { name: 'once', image: 'i' },
        { name: 'side', image: 'i', restartPolicy: 'Always', ports: [{ name: 'named', containerPort: 81 }] },
      ],
    },
  )
  return pod as Pod
}

test('a slimmed pod gives the same workload', () => {
  const service = Object.assign(make.service('ns1/s', '10.1.0.1', { app: 'a' }), {})
  const served = (pod: Pod): string[] => {
    const mesh = createTestMesh()
    mesh.apply(service, pod)
    return [...mesh.index.addresses.list()].map(({ name, version }) => `${name} ${version}`)
  }
  const slim = createKeptFields().pods?.(bigPod('p'))
  assert.ok(slim)
  assert.deepEqual(served(slim), served(bigPod('p')))
  assert.equal(served(slim).length, 2)
})

test('only what is read is kept, and pods of one kind share it', () => {
  const { pods } = createKeptFields()
  const [a, b] = [pods?.(bigPod('a')), pods?.(bigPod('b'))]
  assert.deepEqual(a?.metadata, {
    name: 'a',
    namespace: 'ns1',
    uid: 'ns1/a',
    resourceVersion: '7',
    generateName: 'a-x-',
    labels: { app: 'a', 'pod-template-hash': 'x' },
    annotations: { 'ambient.istio.io/redirection': 'enabled' },
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'a-x', uid: 'r', controller: true }],
  })
  assert.deepEqual(a?.spec, {
    nodeName: 'node',
    serviceAccountName: 'sa',
    containers: [{ name: 'app', ports: [{ name: 'web', containerPort: 80 }] }],
    initContainers: [{ name: 'side', restartPolicy: 'Always', ports: [{ name: 'named', containerPort: 81 }] }],
  })
  assert.equal(a?.metadata.labels, b?.metadata.labels)
  assert.equal(a?.spec?.containers, b?.spec?.containers)
})

test('a new version of a node or pod with nothing new in it computes nothing', () => {
  const mesh = createTestMesh()
  const { nodes } = createKeptFields()
  const beat = (version: string): Node => {
    const node = make.node('node', { 'topology.kubernetes.io/zone': 'z' }, { resourceVersion: version })
    return nodes?.({
      ...node,
      status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: version }] },
    } as Node) as Node
  }
  mesh.apply(beat('1'), make.pod('ns1/p', '10.0.0.1'))
  const runs = (): number => mesh.graph.describe().reduce((sum, { recomputations }) => sum + recomputations, 0)
  const before = runs()
  mesh.apply(beat('2'), make.pod('ns1/p', '10.0.0.1', {}, { resourceVersion: '2' }))
  assert.equal(runs(), before)
})
