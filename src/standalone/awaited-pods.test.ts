import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '../api/index.ts'
import { awaitedPods } from './awaited-pods.ts'
import type { Pod } from './node/types.ts'

const web = (spec: object, kind = 'Deployment'): KubeObject => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name: 'web', namespace: 'shop' },
  spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
})

const pod = (name: string, { ready = true, app = 'web', namespace = 'shop', ending = false } = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace, labels: { app }, ...(ending ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
  spec: { containers: [] },
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
})

test('pods that no controller has made yet are awaited', () => {
  assert.deepEqual(awaitedPods([web({ replicas: 2 })], []), ['shop/web* (0 of 2 created)'])
  assert.deepEqual(awaitedPods([web({})], []), ['shop/web* (0 of 1 created)'])
  for (const kind of ['ReplicaSet', 'StatefulSet']) assert.equal(awaitedPods([web({}, kind)], []).length, 1)
})

test('pods of others, of other namespaces, and those that end do not count as made', () => {
  const others = [pod('a', { app: 'client' }), pod('b', { namespace: 'else' }), pod('c', { ending: true })]
  assert.deepEqual(awaitedPods([web({})], others), ['shop/web* (0 of 1 created)'])
})

test('pods that are made are awaited until they are ready', () => {
  assert.deepEqual(awaitedPods([web({ replicas: 2 })], [pod('a'), pod('b', { ready: false })]), ['shop/b (Running)'])
  assert.deepEqual(awaitedPods([web({ replicas: 2 })], [pod('a'), pod('b')]), [])
})

test('nothing is awaited of a workload without replicas, nor of kinds that have none', () => {
  assert.deepEqual(awaitedPods([web({ replicas: 0 }), web({}, 'DaemonSet')], []), [])
})
