import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalName, canonicalRevision, podWorkloadName, workloadEntryName } from './names.ts'

test('a pod is named after what made it', () => {
  const owned = (kind: string, owner: string, labels: Record<string, string> = {}) =>
    podWorkloadName({
      name: 'pod',
      generateName: 'pod-',
      labels,
      ownerReferences: [{ apiVersion: 'v1', kind, name: owner, uid: 'u', controller: true }],
    })
  assert.equal(owned('ReplicaSet', 'web-6d4b', { 'pod-template-hash': '6d4b' }), 'web')
  assert.equal(owned('ReplicaSet', 'web-6d4b', { 'rollouts-pod-template-hash': '6d4b' }), 'web')
  assert.equal(owned('ReplicaSet', 'web-6d4b'), 'web-6d4b')
  assert.equal(owned('ReplicationController', 'web-3', { deploymentconfig: 'web' }), 'web')
  assert.equal(owned('Job', 'nightly-28012345'), 'nightly')
  assert.equal(owned('Job', 'once-123'), 'once-123')
  assert.equal(owned('DaemonSet', 'agent'), 'agent')
  assert.equal(owned('DaemonSet', 'agent', { 'service.istio.io/workload-name': 'named' }), 'named')
})

test('a pod made by hand has its own name', () => {
  assert.equal(podWorkloadName({ name: 'pod' }), 'pod')
  assert.equal(
    podWorkloadName({
      name: 'pod',
      ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'u', controller: true }],
    }),
    'pod',
  )
})

test('canonical name and revision come from the first label that is there', () => {
  assert.equal(canonicalName({ app: 'a', 'app.kubernetes.io/name': 'b' }, 'w'), 'b')
  assert.equal(canonicalName({ app: 'a', 'service.istio.io/canonical-name': 'c' }, 'w'), 'c')
  assert.equal(canonicalName({}, 'w'), 'w')
  assert.equal(canonicalRevision({ version: 'v1' }), 'v1')
  assert.equal(canonicalRevision({}), 'latest')
})

test('a WorkloadEntry is named after the group it was registered for, else by its label, else by itself', () => {
  const entry = (annotations: Record<string, string>, labels: Record<string, string>) =>
    workloadEntryName({ apiVersion: 'v1', kind: 'WorkloadEntry', metadata: { name: 'vm', annotations } }, labels)
  const [group, label] = [{ 'istio.io/autoRegistrationGroup': 'group' }, { 'service.istio.io/workload-name': 'named' }]
  assert.deepEqual([entry(group, label), entry({}, label), entry({}, {})], ['group', 'named', 'vm'])
})
