import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { startTestApi, type TestApi } from '../../test/support/embedded-api.ts'
import { resources } from '../api/index.ts'
import { silentLogging } from '../observability/index.ts'
import { followMeshConfig, type MeshConfigInForce } from './mesh-config.ts'

const namespace = 'istio-system'
const bad = 'trustDomain: ['

describe('mesh config of two ConfigMaps', { timeout: 30_000 }, () => {
  let api: TestApi
  let errors: string[] = []
  let refused = Promise.withResolvers<void>()
  before(async () => {
    api = await startTestApi()
    await api.client.create(resources.namespaces, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace },
    })
    for (const name of ['istio', 'shared']) {
      await api.client.create(resources.configMaps, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace, name },
        data: { mesh: '' },
      })
    }
  })
  beforeEach(() => {
    errors = []
    refused = Promise.withResolvers()
  })
  after(() => api[Symbol.asyncDispose]())

  const write = (name: string, mesh: string) =>
    api.client.patch(resources.configMaps, { namespace, name }, { kind: 'merge', body: { data: { mesh } } })
  const silent = silentLogging().scope('test')
  const log = { ...silent, error }
  function error(message: string): void {
    errors.push(message)
    if (message === 'there is no valid mesh config: nothing is served until there is') refused.resolve()
  }
  const follow = () =>
    followMeshConfig(
      api.client,
      {
        namespace,
        revision: 'default',
        meshConfigFile: '/none',
        meshNetworksFile: '/none',
        sharedMeshConfig: 'shared',
      },
      log,
    )
  const until = (mesh: MeshConfigInForce, holds: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const end = mesh.subscribe(look)
      function look(): void {
        if (!holds()) return
        end()
        resolve()
      }
      look()
    })

  test('starts with the one that is valid when the other is not', async () => {
    await write('shared', bad)
    await write('istio', 'trustDomain: own.example')
    await using mesh = follow()
    await mesh.synced
    assert.equal(mesh.current.trustDomain, 'own.example')
    assert.deepEqual(errors, ['the mesh config is invalid; it does not count'])
  })

  test('keeps what each of them said last that was valid, and goes on with the other', async () => {
    await write('shared', 'rootNamespace: shared-root')
    await write('istio', 'trustDomain: own.example')
    await using mesh = follow()
    await mesh.synced
    await write('istio', bad)
    await write('shared', 'rootNamespace: other-root')
    await until(mesh, () => mesh.current.rootNamespace === 'other-root')
    assert.equal(mesh.current.trustDomain, 'own.example')
  })

  test('waits for a valid one when the other says nothing', async () => {
    await write('shared', '')
    await write('istio', bad)
    await using mesh = follow()
    let isSynced = false
    const synced = mesh.synced.then(() => {
      isSynced = true
    })
    await refused.promise
    await write('shared', '# still nothing')
    assert.equal(isSynced, false)
    await write('istio', 'trustDomain: own.example')
    await synced
    assert.equal(mesh.current.trustDomain, 'own.example')
  })
})
