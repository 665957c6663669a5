import assert from 'node:assert/strict'
import { test } from 'node:test'
import { meshOf } from '../../../test/support/mesh.ts'
import { loadConfig } from '../config/index.ts'
import { dataPlaneOptions } from '../workers/data-plane-options.ts'
import { servedIdentity } from './pod-context.ts'

test('a pod is served in the identity of its workload, in the trust domain that is given for it', () => {
  const local = meshOf(
    'workloads: [{uid: w, namespace: n, serviceAccount: a, trustDomain: told, workloadIps: [], services: {}}]',
  ).workload('w')
  assert.ok(local)
  const options = dataPlaneOptions(
    loadConfig({ env: {}, machineCpus: 1, knowsKeyExchange: () => true, readFile: () => undefined }),
  )
  const identity = { trustDomain: 'told', namespace: 'n', serviceAccount: 'a' }
  assert.deepEqual(servedIdentity({ options }, local), identity)
  const given = { ...options, trustDomain: 'given' }
  assert.deepEqual(servedIdentity({ options: given }, local), { ...identity, trustDomain: 'given' })
})
