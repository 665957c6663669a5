import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestMesh, make } from './testing.ts'

const ready = { conditions: [{ type: 'Ready', status: 'True' }] }
const endpoint = (pod: string, uid: string) => ({ addresses: ['10.0.0.1'], targetRef: { kind: 'Pod', name: pod, uid } })

test('endpoints whose pod is not there, or is another one by now, are counted while that is so', () => {
  const mesh = createTestMesh()
  const withoutPod = (): number => mesh.index.endpointCounts().withoutPod
  mesh.apply(
    make.service('ns1/svc', '10.1.0.1', {}),
    make.pod('ns1/a', '10.0.0.1'),
    make.slice('ns1/svc-1', 'svc', [endpoint('a', 'ns1/a'), endpoint('b', 'ns1/b'), endpoint('a', 'older')]),
    make.slice('ns1/svc-2', 'svc', [{ addresses: ['10.0.0.9'] }]),
  )
  assert.equal(withoutPod(), 2)
  mesh.apply(make.pod('ns1/b', '10.0.0.2'))
  assert.equal(withoutPod(), 1)
  mesh.remove('Pod/ns1/a')
  assert.equal(withoutPod(), 2)
  mesh.remove('EndpointSlice/ns1/svc-1')
  assert.equal(withoutPod(), 0)
})

test('workloads that are served as unhealthy are counted while they are', () => {
  const mesh = createTestMesh()
  const notReady = (): number => mesh.index.endpointCounts().notReady
  const pod = (status: object) =>
    Object.assign(make.pod('ns1/a', '10.0.0.1'), { status: { podIP: '10.0.0.1', ...status } })
  mesh.apply(pod({}), make.service('ns1/svc', '10.1.0.1', {}))
  mesh.apply(make.slice('ns1/svc-1', 'svc', [{ addresses: ['10.0.0.9'], conditions: { ready: false } }]))
  assert.equal(notReady(), 2)
  mesh.apply(pod(ready))
  assert.equal(notReady(), 1)
  mesh.remove('EndpointSlice/ns1/svc-1')
  assert.equal(notReady(), 0)
})
