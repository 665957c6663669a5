// A remote cluster whose API server is Kubernetes' own: read, believed and given the roots with no more than the rights of the remote reader.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { createCaClient } from '../../src/ca/client/index.ts'
import { createRunningPod, meshRoots, tokenOf } from '../support/cluster-objects.ts'
import { kubeApiServerIsMissing } from '../support/kube-apiserver.ts'
import { type MeshCluster, startMeshCluster } from '../support/mesh-cluster.ts'
import { observeXds } from '../support/xds-observer.ts'

const reader = 'istio-reader-service-account'
const app = (name: string) => ({ namespace: 'app', name })

describe('two clusters of Kubernetes', { timeout: 180_000, skip: kubeApiServerIsMissing }, () => {
  let local: MeshCluster
  let remote: MeshCluster
  before(async () => {
    ;[local, remote] = await Promise.all([startMeshCluster(), startMeshCluster()])
  })
  after(async () => {
    for (const one of [local, remote]) await one?.[Symbol.asyncDispose]()
  })

  test('the remote one is read, its tokens are good, and it gets the roots when it asks; then it goes', async () => {
    const kubeconfig = remote.api.kubeconfigText(await remote.tokenOf(reader))
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: 'istio-system', name: 'far', labels: { 'istio/multiCluster': 'true' } },
      data: { far: Buffer.from(kubeconfig).toString('base64') },
    }
    await createRunningPod(remote.client, app('web-0'), { ip: '10.9.0.1', account: 'web' })
    await using discovery = await local.startDiscovery({ env: { AMBIENT_ENABLE_MULTI_NETWORK: 'true' } })
    await using proxy = observeXds(discovery.ports.plainGrpc ?? 0)
    await local.client.create<KubeObject>(resources.secrets, secret)
    await proxy.until(() => proxy.held.has('far//Pod/app/web-0'))

    const roots = await meshRoots(local.client)
    const ask = async (token: string, clusterId: string) => {
      await using ca = createCaClient({
        address: `127.0.0.1:${discovery.ports.grpc}`,
        roots: { kind: 'pem', pem: roots },
        alternativeHostname: 'istiod.istio-system.svc',
        token: () => token,
        clusterId,
        impersonate: false,
      })
      return await ca.requestCertificate('spiffe://cluster.local/ns/app/sa/web')
    }
    const token = await tokenOf(remote.client, app('web'))
    const { leaf } = await ask(token, 'far')
    assert.equal(new X509Certificate(leaf).subjectAltName, 'URI:spiffe://cluster.local/ns/app/sa/web')
    // Both clusters name their issuer alike: only the key tells whose a token is.
    await assert.rejects(ask(token, 'Kubernetes'), /authenticat/i)

    const annotations = { 'topology.istio.io/controlPlaneClusters': 'Kubernetes' }
    await remote.client.patch(
      resources.namespaces,
      { name: 'istio-system' },
      { kind: 'merge', body: { metadata: { annotations } } },
    )
    type ConfigMap = KubeObject & { readonly data?: Readonly<Record<string, string>> }
    const handedOut = await remote.api.until<ConfigMap, string>(
      resources.configMaps,
      app('istio-ca-root-cert'),
      (found) => found?.data?.['root-cert.pem'],
    )
    assert.equal(handedOut.trim(), roots.trim())

    // It is down for a while: what it said stays.
    await remote.api.kill()
    await discovery.log.until(/a watch broke.*ECONNREFUSED/)
    await remote.api.start()
    await createRunningPod(remote.client, app('web-1'), { ip: '10.9.0.2', account: 'web' })
    await proxy.until(() => proxy.held.has('far//Pod/app/web-1'))
    assert.deepEqual([...proxy.removed], [])

    await local.client.delete(resources.secrets, secret.metadata)
    await proxy.until(() => ![...proxy.held.keys()].some((name) => name.startsWith('far/')))
    assert.deepEqual(remote.refusals(reader), [])
    assert.deepEqual(local.refusals(), [])
  })
})
