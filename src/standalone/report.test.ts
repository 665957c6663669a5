import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from './node/types.ts'
import { meshState, podRows } from './report.ts'

const podOf = (
  phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed',
  metadata: Partial<Pod['metadata']> = {},
): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a', namespace: 'n', ...metadata },
  spec: { containers: [] },
  status: { phase },
})
const redirection = (value: string) => ({ annotations: { 'ambient.istio.io/redirection': value } })

test('a pod is in the mesh, joining, expected there, or outside', () => {
  assert.equal(meshState(podOf('Running', redirection('enabled')), true), 'in the mesh')
  assert.equal(meshState(podOf('Running', redirection('pending')), true), 'joining')
  assert.equal(meshState(podOf('Pending'), true), 'not yet')
  assert.equal(meshState(podOf('Running'), false), '-')
  assert.equal(meshState(podOf('Running', { labels: { 'istio.io/dataplane-mode': 'none' } }), true), '-')
})

test('a pod that has done its work, or failed, is not expected in the mesh any more', () => {
  for (const phase of ['Succeeded', 'Failed'] as const) assert.equal(meshState(podOf(phase), true), '-')
})

test('a pod that has done its work is called as kubectl calls it', () => {
  const [, row] = podRows([podOf('Succeeded')], [])
  assert.deepEqual(row, ['n/a', '0/0', 'Completed', '0', '-', '-', '-'])
})
