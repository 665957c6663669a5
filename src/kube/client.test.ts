import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createTestPki, type TestPki } from '../../test/support/test-pki.ts'
import type { Resource } from '../api/index.ts'
import { clientOf, createKubeClient, inClusterConnection, isKubeError, type KubeClient } from './index.ts'
import { startTestApi, type TestApi } from './test-api.ts'

const widgets: Resource = { group: 'example.com', version: 'v1', kind: 'Widget', plural: 'widgets', namespaced: false }

describe('a client', { timeout: 20_000 }, () => {
  let pki: TestPki
  let api: TestApi
  let dir: string
  before(async () => {
    pki = await createTestPki()
    api = await startTestApi(pki)
    dir = mkdtempSync(join(tmpdir(), 'lateen-kube-'))
    api.put('a', 1)
  })
  after(async () => {
    await api.stop()
    rmSync(dir, { recursive: true })
  })

  const kubeconfigOf = (user: object, cluster: object = {}): string => {
    const path = join(dir, 'kubeconfig')
    writeFileSync(
      path,
      JSON.stringify({
        'current-context': 'here',
        contexts: [{ name: 'here', context: { cluster: 'c', user: 'u', namespace: 'ns' } }],
        clusters: [
          {
            name: 'c',
            cluster: {
              server: api.url,
              'certificate-authority-data': Buffer.from(pki.roots).toString('base64'),
              ...cluster,
            },
          },
        ],
        users: [{ name: 'u', user }],
      }),
    )
    return path
  }

  async function using<T>(client: KubeClient, work: (client: KubeClient) => Promise<T>): Promise<T> {
    try {
      return await work(client)
    } finally {
      await client.close()
    }
  }

  test('reads a kubeconfig with a token, a token file and an exec plugin', async () => {
    writeFileSync(join(dir, 'token'), 'good\n')
    writeFileSync(join(dir, 'plugin.sh'), `#!/bin/sh\necho '{"kind":"ExecCredential","status":{"token":"good"}}'\n`, {
      mode: 0o755,
    })
    const users = [
      { token: 'good' },
      { tokenFile: 'token' },
      { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: './plugin.sh' } },
    ]
    for (const user of users) {
      const client = await createKubeClient({ kubeconfig: kubeconfigOf(user) })
      const object = await using(client, () => client.get(widgets, { name: 'a' }))
      assert.equal(object?.metadata.name, 'a', JSON.stringify(user))
    }
  })

  test('says which file and what is wrong with a kubeconfig', async () => {
    const path = join(dir, 'broken')
    writeFileSync(path, 'current-context: nowhere\n')
    await assert.rejects(createKubeClient({ kubeconfig: path }), /broken: there is no context "nowhere"/)
    await assert.rejects(createKubeClient({ kubeconfig: join(dir, 'absent') }), /absent: there is no such file$/)
  })

  test('takes a renewed token from the pod’s volume when the old one is refused', async () => {
    const volume = mkdtempSync(join(dir, 'sa-'))
    writeFileSync(join(volume, 'token'), 'good')
    writeFileSync(join(volume, 'ca.crt'), pki.roots)
    const env = { KUBERNETES_SERVICE_HOST: 'localhost', KUBERNETES_SERVICE_PORT: String(api.port) }
    await using(clientOf(inClusterConnection(env, volume)), async (client) => {
      await client.get(widgets, { name: 'a' })
      api.token = 'renewed'
      await assert.rejects(client.get(widgets, { name: 'a' }), (error) => isKubeError(error, 401))
      writeFileSync(join(volume, 'token'), 'renewed')
      assert.equal((await client.get(widgets, { name: 'a' }))?.metadata.name, 'a')
      api.token = 'good'
    })
  })

  test('refuses a server whose certificate is not of the given authority', async () => {
    const other = await createTestPki()
    const kubeconfig = kubeconfigOf(
      { token: 'good' },
      { 'certificate-authority-data': Buffer.from(other.roots).toString('base64') },
    )
    await using(await createKubeClient({ kubeconfig }), async (client) => {
      await assert.rejects(client.get(widgets, { name: 'a' }), (error) => isKubeError(error, 0))
    })
  })

  test('gives typed errors, absent objects, resources by kind, and patches with their type', async () => {
    await using(await createKubeClient({ kubeconfig: kubeconfigOf({ token: 'good' }) }), async (client) => {
      assert.equal(await client.get(widgets, { name: 'none' }), undefined)
      assert.equal(await client.delete(widgets, { name: 'none' }), false)
      assert.deepEqual(await client.resolve('example.com/v1', 'Widget'), widgets)
      assert.equal(await client.resolve('example.com/v1', 'Gadget'), undefined)
      assert.equal(await client.resolve('other.io/v1', 'Gadget'), undefined)
      await assert.rejects(
        client.patch(widgets, { name: 'none' }, { kind: 'apply', body: {}, fieldManager: 'test' }),
        (error) =>
          isKubeError(error, 404) && error.reason === 'NotFound' && error.message.includes('test says NotFound'),
      )
      assert.ok(api.requests.includes('PATCH none application/apply-patch+yaml'))
      const response = await client.request('/apis/example.com/v1/widgets/a')
      assert.equal(response.status, 200)
      assert.equal(((await response.json()) as { kind: string }).kind, 'Widget')
    })
  })

  test('reads again over a new connection when the server has closed the idle one', async () => {
    await using(await createKubeClient({ kubeconfig: kubeconfigOf({ token: 'good' }) }), async (client) => {
      for (let i = 0; i < 3; i += 1) {
        await client.get(widgets, { name: 'a' })
        await api.stop()
        await api.start()
      }
      assert.equal((await client.get(widgets, { name: 'a' }))?.metadata.name, 'a')
    })
  })

  test('says that the server cannot be reached, and ends what is under way when closed', async () => {
    const client = await createKubeClient({ kubeconfig: kubeconfigOf({ token: 'good' }) })
    const informer = client.informer(widgets)
    await informer.synced
    await client.close()
    await assert.rejects(client.get(widgets, { name: 'a' }), /closed/)
    const nowhere = await createKubeClient({
      kubeconfig: kubeconfigOf({ token: 'good' }, { server: 'https://localhost:1' }),
    })
    await assert.rejects(
      nowhere.get(widgets, { name: 'a' }),
      (error) => isKubeError(error, 0) && error.reason === 'Unreachable',
    )
    await nowhere.close()
  })
})
