// `lateen up --trust-bundle`: the roots of the mesh in a ClusterTrustBundle, for the node proxies and for any pod.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import test, { after, before } from 'node:test'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { createTestAuthority } from '../support/certificates.ts'
import { type MeshInstance, needsRoot, startMeshInstance } from '../support/mesh-instance.ts'
import { document, inMesh, namespaceManifest, podManifest, podProgram } from '../support/mesh-manifests.ts'

const options = { skip: needsRoot, timeout: 60_000 }
const { clusterTrustBundles, configMaps } = resources
const signerName = 'istio.io/istiod-ca'
const key = { name: 'istio.io:istiod-ca:root-cert' }
const mountPath = '/var/run/roots'

type Bundle = KubeObject<{ readonly signerName: string; readonly trustBundle: string }>

/** A pod that has the roots of the signer as a file. */
const reader = document({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'reader' },
  spec: {
    terminationGracePeriodSeconds: 1,
    volumes: [
      {
        name: 'roots',
        projected: { sources: [{ clusterTrustBundle: { signerName, labelSelector: {}, path: 'roots.pem' } }] },
      },
    ],
    containers: [
      { name: 'c', image: 'host', command: ['sleep', 'infinity'], volumeMounts: [{ name: 'roots', mountPath }] },
    ],
  },
})

let mesh: MeshInstance
let trusted: Bundle

before(async () => {
  if (needsRoot) return
  mesh = await startMeshInstance('--trust-bundle')
  const pods = [podManifest('server', 'node-1'), podManifest('client', 'node-2'), reader]
  await mesh.apply([namespaceManifest('default', inMesh), ...pods].join(''))
  await Promise.all(['server', 'client', 'reader'].map((name) => mesh.pod(name)))
  const found = await mesh.client.get<Bundle>(clusterTrustBundles, key)
  assert.ok(found)
  trusted = found
}, options)

after(async () => {
  await mesh?.[Symbol.asyncDispose]()
}, options)

test('the control plane hands out its root in the bundle, and in no ConfigMap', options, async () => {
  assert.equal(trusted.spec?.signerName, signerName)
  assert.equal(new X509Certificate(trusted.spec?.trustBundle ?? '').ca, true)
  assert.equal(await mesh.client.get(configMaps, { namespace: 'default', name: 'istio-ca-root-cert' }), undefined)
})

test('node proxies trust it: pods of two nodes talk in the mesh', options, async () => {
  const server = await mesh.pod('server')
  const { code, output } = await mesh.exec('client', ...podProgram, 'echo', server.status?.podIP ?? '')
  assert.equal(code, 0, output)
  const [proxy] = (await mesh.pods('istio-system', 'app=ztunnel')).filter(({ spec }) => spec?.nodeName === 'node-1')
  const { output: log } = await mesh.command('logs', '-n', 'istio-system', proxy?.metadata.name ?? '')
  assert.match(log, /connection complete.*src\.identity="spiffe:\/\/cluster\.local\/ns\/default\/sa\/default"/)
})

test('a pod that projects the bundle of the signer has the root as a file', options, async () => {
  const { output } = await mesh.exec('reader', 'cat', `${mountPath}/roots.pem`)
  assert.equal(output.trim(), trusted.spec?.trustBundle.trim())
})

test('roots that somebody else puts into the bundle are taken out again', options, async () => {
  const { root } = await createTestAuthority()
  const body = { spec: { trustBundle: root } }
  const foreign = await mesh.client.patch<Bundle>(clusterTrustBundles, key, { kind: 'merge', body })
  await using informer = mesh.client.informer<Bundle>(clusterTrustBundles)
  const restored = Promise.withResolvers<Bundle>()
  const changedAt = Number(foreign.metadata.resourceVersion)
  informer.subscribe((changes) => {
    for (const { object } of changes) if (Number(object.metadata.resourceVersion) > changedAt) restored.resolve(object)
  })
  assert.equal((await restored.promise).spec?.trustBundle, trusted.spec?.trustBundle)
})
