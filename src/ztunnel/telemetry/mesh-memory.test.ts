import assert from 'node:assert/strict'
import { test } from 'node:test'
import { meshOf } from '../../../test/support/mesh.ts'
import { createMetricsRegistry } from '../../observability/index.ts'
import { registerMeshMemoryMetrics } from './mesh-memory.ts'

test('the memory of the mesh is told, and what it may become', () => {
  const state = meshOf('{}')
  const registry = createMetricsRegistry()
  registerMeshMemoryMetrics(registry, state.usage)
  const bytes = (kind: string): number => {
    const family = registry.snapshot().find(({ name }) => name === 'lateen_mesh_memory_bytes')
    const value = family?.series.find(({ labels }) => labels[0] === kind)?.value
    assert.ok(value !== undefined)
    return value
  }
  const empty = bytes('used')
  state.apply({ workloads: meshOf('workloads: [{uid: a, namespace: n, workloadIps: [], services: {}}]').workloads() })
  assert.ok(bytes('used') > empty)
  assert.ok(bytes('reserved') >= bytes('used'))
  assert.ok(bytes('limit') > bytes('reserved'))
})
