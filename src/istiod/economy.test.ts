// Which changes of objects reach the wire, and that nothing else does.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { KubeObject } from '../api/index.ts'
import { createGraph } from '../collections/index.ts'
import { defaultMeshConfig } from '../config/index.ts'
import {
  type AmbientKind,
  type AmbientObjects,
  createAmbientIndex,
  createAmbientInputs,
  defaultAmbientSettings,
} from '../discovery/ambient/index.ts'
import { exportedTypes } from './exported-types.ts'

const meta = (name: string, more: object = {}) => ({ namespace: 'app', name, uid: name, ...more })
const pod = (name: string, ip: string, labels: Record<string, string> = { app: name }): AmbientObjects['pods'] => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: meta(name, { labels, annotations: { 'ambient.istio.io/redirection': 'enabled' } }),
  spec: { nodeName: 'n', serviceAccountName: name, containers: [] },
  status: {
    phase: 'Running',
    podIP: ip,
    podIPs: [{ ip }],
    conditions: [{ type: 'Ready', status: 'True' }],
  },
})
const service = (name: string, ip: string): AmbientObjects['services'] => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: meta(name),
  spec: { clusterIP: ip, clusterIPs: [ip], selector: { app: name }, ports: [{ port: 80 }] },
})
const policy = (name: string, more: object = {}, action = 'DENY'): AmbientObjects['authorizationPolicies'] => ({
  apiVersion: 'security.istio.io/v1',
  kind: 'AuthorizationPolicy',
  metadata: meta(name, more),
  spec: { action, rules: [{ from: [{ source: { namespaces: ['x'] } }] }] } as never,
})

function setUp() {
  const graph = createGraph({ report: (report) => assert.fail(JSON.stringify(report)) })
  const inputs = createAmbientInputs(graph)
  const index = createAmbientIndex({ inputs, settings: defaultAmbientSettings })
  inputs.meshConfig.set({})
  const set = <K extends AmbientKind>(kind: K, object: AmbientObjects[K]) => inputs.feed('Kubernetes', kind).set(object)
  set('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'app' } } as KubeObject as never)
  for (const [name, ip] of [
    ['a', '10.0.0.1'],
    ['b', '10.0.0.2'],
  ] as const) {
    set('pods', pod(name, ip))
    set('services', service(name, ip.replace('10.0.', '10.9.')))
    set('authorizationPolicies', policy(name))
  }
  inputs.markSynced()
  const exported = exportedTypes({
    inputs,
    index,
    others: [],
    settings: { clusterId: 'Kubernetes', restrictsExport: true },
    mesh: { current: defaultMeshConfig('istio-system'), subscribe: () => () => {} },
  })
  const sources = [index.addresses, index.authorizations, ...exported.map(({ source }) => source)]
  const pushed: string[] = []
  let isRecording = false
  for (const source of sources) {
    source.subscribe((changes) => {
      if (isRecording) pushed.push(...changes.map(({ name }) => `${source.typeUrl.split(/[./]/).at(-1)} ${name}`))
    })
  }
  isRecording = true
  return { inputs, set, pushed }
}

describe('a change of an object', () => {
  test('that is its own only reaches nobody else: one pod, one workload', () => {
    const { set, pushed } = setUp()
    set('pods', pod('a', '10.0.0.7'))
    assert.deepEqual(pushed, ['Address Kubernetes//Pod/app/a'])
  })

  test('that the mesh does not read is no push: resource versions, labels and annotations of others, status', () => {
    const { set, pushed } = setUp()
    const plain = pod('a', '10.0.0.1')
    set('pods', { ...plain, metadata: { ...plain.metadata, resourceVersion: '99', labels: { app: 'a', note: 'x' } } })
    set('services', { ...service('a', '10.9.0.1'), metadata: meta('a', { annotations: { 'helm.sh/note': 'x' } }) })
    assert.deepEqual(pushed, [])
  })

  test('of a policy pushes that policy, and the object to control planes that follow this one', () => {
    const { set, pushed } = setUp()
    set('authorizationPolicies', policy('a', {}, 'ALLOW'))
    assert.deepEqual(pushed.sort(), ['Authorization app/a', 'AuthorizationPolicy app/a'])
  })

  test('of a policy’s status is for nobody: it is written here', () => {
    const { set, pushed } = setUp()
    set('authorizationPolicies', { ...policy('a', { resourceVersion: '99' }), status: { observedGeneration: 1 } })
    assert.deepEqual(pushed, [])
  })

  test('of a Service pushes it, and to control planes what stands for it', () => {
    const { set, pushed } = setUp()
    set('services', service('a', '10.9.0.77'))
    assert.deepEqual(pushed.sort(), ['Address app/a.app.svc.cluster.local', 'ServiceEntry app/synthetic-a'])
  })

  test('of a policy’s label is passed on to control planes, and no proxy hears of it', () => {
    const { set, pushed } = setUp()
    set('authorizationPolicies', policy('a', { labels: { test: 'v2' } }))
    assert.deepEqual(pushed, ['AuthorizationPolicy app/a'])
  })

  test('that is set again as it was is no push', () => {
    const { set, pushed } = setUp()
    set('pods', pod('a', '10.0.0.1'))
    set('services', service('a', '10.9.0.1'))
    set('authorizationPolicies', policy('a'))
    assert.deepEqual(pushed, [])
  })

  test('and its return in one step are no push, several of one object are one', () => {
    const { inputs, set, pushed } = setUp()
    inputs.graph.transaction(() => {
      set('pods', pod('a', '10.0.0.8'))
      set('pods', pod('a', '10.0.0.1'))
      set('pods', pod('b', '10.0.0.8'))
      set('pods', pod('b', '10.0.0.9'))
    })
    assert.deepEqual(pushed, ['Address Kubernetes//Pod/app/b'])
  })

  test('of endpoints to none and back pushes the workload alone, never its service', () => {
    const { inputs, set, pushed } = setUp()
    inputs.feed('Kubernetes', 'pods').delete({ namespace: 'app', name: 'a' })
    set('pods', pod('a', '10.0.0.1'))
    assert.deepEqual(pushed, ['Address Kubernetes//Pod/app/a', 'Address Kubernetes//Pod/app/a'])
  })
})
