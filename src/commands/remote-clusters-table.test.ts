import assert from 'node:assert/strict'
import { test } from 'node:test'
import { remoteClustersTable } from './remote-clusters-table.ts'

test('the clusters of each control plane, and what is wrong where something is', () => {
  const pod = { istiod: 'istiod-1', revision: 'default' }
  const own = { id: 'Kubernetes', syncStatus: 'synced', ...pod }
  const remote = { id: 'c2', secretName: 'istio-system/c2', syncStatus: 'synced', ...pod }
  assert.equal(
    remoteClustersTable([own, remote]),
    [
      'NAME           SECRET              STATUS     ISTIOD       REVISION',
      'Kubernetes                         synced     istiod-1     default',
      'c2             istio-system/c2     synced     istiod-1     default',
      '',
    ].join('\n'),
  )
  const closed = { ...remote, syncStatus: 'closed', problem: 'exec is not allowed' }
  assert.equal(
    remoteClustersTable([closed]),
    [
      'NAME     SECRET              STATUS     ISTIOD       REVISION     PROBLEM',
      'c2       istio-system/c2     closed     istiod-1     default      exec is not allowed',
      '',
    ].join('\n'),
  )
})
