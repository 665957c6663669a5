// A mesh that has taken over the names of others: whom its root vouches for under which trust domain.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { createKubeClient, type KubeClient } from '../../src/kube/index.ts'
import { makeCa, type TestCa } from '../support/ca.ts'
import { type CertifiedClients, certifiedClients } from '../support/certified-clients.ts'
import { namespaceNamed } from '../support/cluster-objects.ts'
import { type RunningDiscovery, startDiscovery } from '../support/discovery.ts'
import { startApi } from '../support/embedded-api.ts'
import { eventually } from '../support/eventually.ts'

describe('trust domain aliases', { timeout: 60_000 }, () => {
  let stateDir: string
  let api: Awaited<ReturnType<typeof startApi>>
  let kube: KubeClient
  let discovery: RunningDiscovery
  let root: TestCa
  let clients: CertifiedClients
  const istioConfigMap = { namespace: 'istio-system', name: 'istio' }
  const meshOf = (...trustDomainAliases: readonly string[]) => ({
    mesh: JSON.stringify({ trustDomain: 'new.example', trustDomainAliases }),
  })
  const web = (trustDomain: string) => ({ authority: root, identity: `spiffe://${trustDomain}/ns/app/sa/web` })

  before(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'lateen-aliases-'))
    api = await startApi(stateDir)
    kube = await createKubeClient({ kubeconfig: api.kubeconfig })
    for (const name of ['istio-system', 'app']) await kube.create(resources.namespaces, namespaceNamed(name))
    await kube.create(resources.configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: istioConfigMap,
      data: meshOf('old.example'),
    } as KubeObject)
    root = await makeCa({ name: 'shared' })
    const material = join(stateDir, 'cacerts')
    await mkdir(material)
    const files = { 'ca-cert.pem': root.pem, 'ca-key.pem': root.key, 'cert-chain.pem': '', 'root-cert.pem': root.pem }
    for (const [name, text] of Object.entries(files)) await writeFile(join(material, name), text)
    discovery = await startDiscovery({ kubeconfig: api.kubeconfig, stateDir, env: { ROOT_CA_DIR: material } })
    clients = certifiedClients(discovery.ports.grpc, root.pem)
  })
  after(async () => {
    await discovery?.stop()
    await kube?.close()
    await api?.[Symbol.asyncDispose]()
    await rm(stateDir, { recursive: true, force: true })
  })

  for (const trustDomain of ['new.example', 'old.example']) {
    test(`an identity of ${trustDomain} is served, and its certificate is renewed`, async () => {
      assert.equal(await clients.ask(web(trustDomain)), 'served')
      const chain = await clients.certificate(web(trustDomain))
      assert.ok(Array.isArray(chain), String(chain))
      const leaf = new X509Certificate(String(chain[0]))
      assert.equal(leaf.subjectAltName, `URI:${web(trustDomain).identity}`)
      assert.ok(leaf.verify(new X509Certificate(root.pem).publicKey))
    })
  }

  test('one of another domain is nobody, although the same root has signed it', async () => {
    for (const trustDomain of ['other.example', 'cluster.local']) {
      assert.equal(await clients.ask(web(trustDomain)), 'UNAUTHENTICATED', trustDomain)
      assert.equal(await clients.certificate(web(trustDomain)), 'UNAUTHENTICATED', trustDomain)
    }
  })

  test('one of an alias has the rights of its namespace, and no others', async () => {
    const identity = 'spiffe://old.example/ns/istio-system/sa/istiod'
    const tool = { authority: root, identity, namespace: 'istio-system', typeUrl: 'istio.io/debug', names: ['configz'] }
    assert.equal(await clients.ask(tool), 'served')
    assert.equal(await clients.ask({ ...tool, ...web('old.example'), namespace: 'app' }), 'PERMISSION_DENIED')
  })

  test('one of an alias that mesh config names no more is nobody', async () => {
    await kube.patch(resources.configMaps, istioConfigMap, { kind: 'merge', body: { data: meshOf('older.example') } })
    const isTaken = async () => JSON.stringify(await discovery.page('mesh')).includes('older.example')
    await eventually(isTaken, 'the new mesh config')
    assert.equal(await clients.ask(web('older.example')), 'served')
    assert.equal(await clients.ask(web('old.example')), 'UNAUTHENTICATED')
    assert.equal(await clients.certificate(web('old.example')), 'UNAUTHENTICATED')
  })
})
