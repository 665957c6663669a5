import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject, ObjectKey, Resource } from '../../api/index.ts'
import { type KubeClient, KubeError } from '../../kube/index.ts'
import { agentSettings } from '../settings.ts'
import { shouldCleanUp } from './shutdown.ts'

const own = { NODE_NAME: 'n1', AMBIENT_ENABLED: 'true', POD_NAMESPACE: 'mesh' }

function daemonSet(more: { deletionTimestamp?: string; zone?: string } = {}): KubeObject {
  const { zone, ...metadata } = more
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'istio-cni-node', namespace: 'mesh', ...metadata },
    spec: { template: { spec: zone === undefined ? {} : { nodeSelector: { zone } } } },
  }
}

/** Answers look-ups of the DaemonSet, and of the one node there is. */
function cluster(answer: () => KubeObject | undefined, version = 200) {
  const asked: ObjectKey[] = []
  const client = {
    get: async (resource: Resource, key: ObjectKey) => {
      if (resource.plural === 'nodes') return { metadata: { name: 'n1', labels: { zone: 'a' } } }
      asked.push(key)
      return answer()
    },
    request: async () => new Response(null, { status: version }),
  } as unknown as KubeClient
  return { client, asked }
}

for (const [what, env, answer, expected] of [
  ['ambient mode is off', { AMBIENT_ENABLED: 'false' }, () => daemonSet(), true],
  ['safe upgrades are off', { AMBIENT_DISABLE_SAFE_UPGRADE: 'true' }, () => daemonSet(), true],
  ['the DaemonSet is there', {}, () => daemonSet(), false],
  ['the DaemonSet is for this node', {}, () => daemonSet({ zone: 'a' }), false],
  ['the DaemonSet is for other nodes', {}, () => daemonSet({ zone: 'b' }), true],
  ['the DaemonSet is being deleted', {}, () => daemonSet({ deletionTimestamp: '2025-01-01T00:00:00Z' }), true],
  ['the DaemonSet is gone', {}, () => undefined, true],
] as const) {
  test(`${what}: everything ${expected ? 'goes' : 'stays'}`, async () => {
    const { client } = cluster(answer)
    const { cleanUp } = await shouldCleanUp(client, agentSettings({ ...own, ...env }))
    assert.equal(cleanUp, expected)
  })
}

for (const code of [401, 403]) {
  test(`rights that were removed (${code}) mean an uninstallation, when that is said again`, async () => {
    const { client, asked } = cluster(() => {
      throw new KubeError('no', { code, reason: '' })
    })
    assert.equal((await shouldCleanUp(client, agentSettings(own), 0)).cleanUp, true)
    assert.deepEqual(asked, Array(3).fill({ namespace: 'mesh', name: 'istio-cni-node' }))
  })

  test(`a refusal (${code}) that passes means nothing: everything stays`, async () => {
    let refusals = 2
    const { client } = cluster(() => {
      refusals -= 1
      if (refusals >= 0) throw new KubeError('not yet', { code, reason: '' })
      return daemonSet()
    })
    assert.equal((await shouldCleanUp(client, agentSettings(own), 0)).cleanUp, false)
  })
}

test('a server that refuses everybody everything has no rights to tell of yet: everything stays', async () => {
  const forbidden = () => {
    throw new KubeError('no', { code: 403, reason: '' })
  }
  assert.equal((await shouldCleanUp(cluster(forbidden, 403).client, agentSettings(own), 0)).cleanUp, false)
})

test('an API that is out of reach says nothing: it is asked again, and everything stays', async () => {
  const { client, asked } = cluster(() => {
    throw new KubeError('down', { code: 500, reason: '' })
  })
  assert.equal((await shouldCleanUp(client, agentSettings(own), 0)).cleanUp, false)
  assert.equal(asked.length, 3)
})
