import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startApi } from '../../../../test/support/embedded-api.ts'
import type { KubeObject, Resource } from '../../../api/index.ts'
import { createKubeClient, type KubeClient } from '../../index.ts'

type Binding = KubeObject & { subjects: { kind: string; name: string }[] }

const bindings: Resource = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  namespaced: false,
}

test('a state of an earlier version loses the binding that gave every node what any node needs; those of users stay', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-roles-'))
  t.after(() => rmSync(dir, { recursive: true }))
  async function withServer<T>(action: (client: KubeClient) => Promise<T>): Promise<T> {
    await using api = await startApi(dir)
    const client = await createKubeClient({ kubeconfig: api.kubeconfig })
    try {
      return await action(client)
    } finally {
      await client.close()
    }
  }
  const binding = (name: string, labels: Record<string, string>): KubeObject => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name, labels },
    ...{
      roleRef: { apiGroup: bindings.group, kind: 'ClusterRole', name: 'system:node' },
      subjects: [{ apiGroup: bindings.group, kind: 'Group', name: 'system:nodes' }],
    },
  })
  await withServer(async (client) => {
    await client.create(bindings, binding('system:node', { 'kubernetes.io/bootstrapping': 'rbac-defaults' }))
    await client.create(bindings, binding('own', {}))
  })
  const items = await withServer(async (client) => (await client.list<Binding>(bindings)).items)
  const toNodes = items.filter(({ subjects }) => subjects.some(({ name }) => name === 'system:nodes'))
  assert.deepEqual(
    toNodes.map(({ metadata }) => metadata.name),
    ['own'],
  )
  const components = items.filter(({ subjects }) => subjects.some(({ kind }) => kind === 'User'))
  assert.deepEqual(components.map(({ metadata }) => metadata.name).sort(), [
    'system:kube-controller-manager',
    'system:kube-scheduler',
    'system:node-proxier',
  ])
})
