import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Workload } from '../model.ts'
import { createPrefetch, isPrefetched } from './prefetch.ts'

function workload(uid: string, changes: Partial<Workload> = {}): Workload {
  return {
    uid,
    name: uid,
    namespace: 'ns',
    addresses: [],
    hostname: '',
    network: '',
    networkMode: 'Standard',
    protocol: 'HBONE',
    nativeTunnel: false,
    trustDomain: 'cluster.local',
    serviceAccount: 'sa',
    node: 'n1',
    clusterId: '',
    canonicalName: '',
    canonicalRevision: '',
    workloadName: '',
    workloadType: '',
    locality: { region: '', zone: '', subzone: '' },
    capacity: 1,
    status: 'Healthy',
    authorizationPolicies: [],
    services: new Map(),
    ...changes,
  }
}

test('meshed workloads of the own node are fetched ahead', () => {
  assert.equal(isPrefetched(workload('a'), 'n1'), true)
  assert.equal(isPrefetched(workload('a', { protocol: 'TCP', nativeTunnel: true }), 'n1'), true)
  assert.equal(isPrefetched(workload('a', { protocol: 'TCP' }), 'n1'), false)
  assert.equal(isPrefetched(workload('a', { node: 'n2' }), 'n1'), false)
  assert.equal(isPrefetched(workload('a', { node: 'n2' }), undefined), true)
})

test('an identity is forgotten with its last workload, not by an update', () => {
  const calls: string[] = []
  const changed = createPrefetch(
    { prefetch: (identity) => void calls.push(`+${identity}`), forget: (identity) => void calls.push(`-${identity}`) },
    'n1',
  )
  const [a, b] = [workload('a'), workload('b')]
  const moved = workload('b', { serviceAccount: 'other' })
  changed(undefined, a)
  changed(undefined, b)
  changed(a, workload('a', { status: 'Unhealthy' }))
  changed(a, undefined)
  changed(b, moved)
  changed(moved, undefined)
  assert.deepEqual(calls, [
    '+spiffe://cluster.local/ns/ns/sa/sa',
    '+spiffe://cluster.local/ns/ns/sa/sa',
    '+spiffe://cluster.local/ns/ns/sa/sa',
    '+spiffe://cluster.local/ns/ns/sa/other',
    '-spiffe://cluster.local/ns/ns/sa/sa',
    '-spiffe://cluster.local/ns/ns/sa/other',
  ])
})
