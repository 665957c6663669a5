// Ten thousand pods of a Kubernetes API server: read in pages, also while the server forgets the version that is being read.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { createRunningPod, ensureServiceAccount } from '../support/cluster-objects.ts'
import { kubeApiServerIsMissing } from '../support/kube-apiserver.ts'
import { type MeshCluster, startMeshCluster } from '../support/mesh-cluster.ts'
import { observeXds } from '../support/xds-observer.ts'

const podCount = 10_000
const app = (name: string) => ({ namespace: 'app', name })

describe('ten thousand pods on Kubernetes', { timeout: 300_000, skip: kubeApiServerIsMissing }, () => {
  let cluster: MeshCluster
  before(async () => {
    cluster = await startMeshCluster()
    const { client } = cluster
    await ensureServiceAccount(client, 'app', 'web')
    const spec = { nodeName: 'node1', serviceAccountName: 'web', containers: [{ name: 'app', image: 'host' }] }
    const names = Array.from({ length: podCount }, (_, index) => `pod-${index}`)
    const makeSome = async (): Promise<void> => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        await client.create(resources.pods, { apiVersion: 'v1', kind: 'Pod', metadata: app(name), spec } as KubeObject)
      }
    }
    await Promise.all(Array.from({ length: 40 }, makeSome))
    // The last one in the order of the list.
    await createRunningPod(client, app('zz'), { ip: '10.5.0.1', account: 'web' })
  })
  after(() => cluster?.[Symbol.asyncDispose]())

  /** Starts a control plane, waits until it serves the last pod, and returns how it asked for pods. */
  async function listsOfStart(): Promise<readonly { readonly uri: string; readonly code: number }[]> {
    const from = cluster.api.requests().length
    await using discovery = await cluster.startDiscovery()
    await using proxy = observeXds(discovery.ports.plainGrpc ?? 0)
    await proxy.until(() => proxy.held.has('Kubernetes//Pod/app/zz'), 60_000)
    // It follows from there on.
    await createRunningPod(cluster.client, app('zzz'), { ip: '10.5.0.2', account: 'web' })
    await proxy.until(() => proxy.held.has('Kubernetes//Pod/app/zzz'))
    await cluster.client.delete(resources.pods, app('zzz'), { gracePeriodSeconds: 0 })
    await proxy.until(() => !proxy.held.has('Kubernetes//Pod/app/zzz'))
    assert.deepEqual(cluster.refusals(), [])
    return cluster.api
      .requests()
      .slice(from)
      .filter(({ verb, requestURI }) => verb === 'list' && /^\/api\/v1\/pods(\?|$)/.test(requestURI))
      .filter(({ user }) => user.username === 'system:serviceaccount:istio-system:istiod')
      .map(({ requestURI, responseStatus }) => ({ uri: requestURI, code: responseStatus?.code ?? 0 }))
  }

  test('are read once, in pages of five hundred', async () => {
    const lists = await listsOfStart()
    assert.equal(lists.length, Math.ceil((podCount + 1) / 500))
    assert.ok(lists.every(({ uri, code }) => uri.includes('limit=500') && code === 200))
  })

  test('are read whole although the version of the first pages is forgotten meanwhile', async () => {
    await cluster.api.kill()
    await cluster.api.start(['--watch-cache=false'])
    const stop = new AbortController()
    const forgetting = (async () => {
      for (let n = 0; !stop.signal.aborted; n += 1) {
        const body = { metadata: { annotations: { turn: String(n) } } }
        await cluster.client.patch(resources.namespaces, { name: 'app' }, { kind: 'merge', body })
        await cluster.api.compact()
      }
    })()
    try {
      const lists = await listsOfStart()
      assert.ok(
        lists.some(({ code }) => code === 410),
        'no page was asked for too late',
      )
      assert.ok(
        lists.some(({ uri, code }) => code === 200 && !uri.includes('limit=')),
        'then they are read in one piece',
      )
    } finally {
      stop.abort()
      await forgetting
    }
  })
})
