// Clients of other trust domains, known by their certificates: what they are served, and what they are not.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { createKubeClient, type KubeClient } from '../../src/kube/index.ts'
import { makeCa, type TestCa } from '../support/ca.ts'
import { type CertifiedClients, type CertifiedQuestion, certifiedClients } from '../support/certified-clients.ts'
import { namespaceNamed } from '../support/cluster-objects.ts'
import { type RunningDiscovery, startDiscovery } from '../support/discovery.ts'
import { startApi } from '../support/embedded-api.ts'

type ConfigMap = KubeObject & { readonly data?: Readonly<Record<string, string>> }

const inA = 'spiffe://a.example/ns/app/sa/web'
const istioConfigMap = { namespace: 'istio-system', name: 'istio' }
const meshOf = (...caCertificates: readonly object[]) => ({ mesh: JSON.stringify({ caCertificates }) })

describe('clients of other trust domains', { timeout: 120_000 }, () => {
  let stateDir: string
  let api: Awaited<ReturnType<typeof startApi>>
  let kube: KubeClient
  let discovery: RunningDiscovery
  let serverRoots: string
  let a: TestCa
  let b: TestCa

  before(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'lateen-foreign-'))
    api = await startApi(stateDir)
    kube = await createKubeClient({ kubeconfig: api.kubeconfig })
    for (const name of ['istio-system', 'app']) await kube.create(resources.namespaces, namespaceNamed(name))
    ;[a, b] = [await makeCa({ name: 'a' }), await makeCa({ name: 'b' })]
    await kube.create(resources.configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: istioConfigMap,
      data: meshOf({ pem: a.pem, trustDomains: ['a.example'] }, { pem: b.pem, trustDomains: ['b.example'] }),
    } as KubeObject)
    discovery = await startDiscovery({ kubeconfig: api.kubeconfig, stateDir })
    for (;;) {
      const bundle = await kube.get<ConfigMap>(resources.configMaps, { namespace: 'app', name: 'istio-ca-root-cert' })
      serverRoots = bundle?.data?.['root-cert.pem'] ?? ''
      if (serverRoots !== '') break
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })
  after(async () => {
    await discovery?.stop()
    await kube?.close()
    await api?.[Symbol.asyncDispose]()
    await rm(stateDir, { recursive: true, force: true })
  })

  const clients = (): CertifiedClients => certifiedClients(discovery.ports.grpc, serverRoots)
  const ask = (question: CertifiedQuestion): Promise<string> => clients().ask(question)

  test('are served when their chain leads to a root of their own domain', async () => {
    assert.equal(await ask({ authority: a, identity: inA }), 'served')
    const middle = await makeCa({ name: 'middle', issuer: b })
    const identity = 'spiffe://b.example/ns/app/sa/web'
    assert.equal(await ask({ authority: middle, intermediates: middle.pem, identity }), 'served')
    assert.equal(await ask({ authority: middle, identity }), 'UNAUTHENTICATED')
  })

  test('are nobody when a root of another domain vouches for them, or none does', async () => {
    const liars: readonly CertifiedQuestion[] = [
      { authority: a, identity: 'spiffe://b.example/ns/app/sa/web' },
      { authority: a, identity: 'spiffe://b.example/ns/app/sa/web', intermediates: b.pem },
      { authority: a, identity: 'spiffe://cluster.local/ns/app/sa/web' },
      { authority: a, identity: 'spiffe://cluster.local/ns/app/sa/web', intermediates: serverRoots },
      { authority: a, identity: 'spiffe://c.example/ns/app/sa/web' },
      { authority: a, identity: inA, dns: ['spiffe://cluster.local/ns/istio-system/sa/istiod'] },
    ]
    for (const liar of liars) assert.equal(await ask(liar), 'UNAUTHENTICATED', liar.identity)
    await discovery.log.until(/a stream was refused.*does not lead to a root of trust domain b\.example/)
    await discovery.log.until(/a stream was refused.*no roots are known for trust domain c\.example/)
    await discovery.log.until(/a stream was refused.*no URI reads as an identity/)
  })

  test('are the node that their identity says, and no other', async () => {
    const identity = inA
    assert.equal(await ask({ authority: a, identity, namespace: 'istio-system' }), 'PERMISSION_DENIED')
    assert.equal(await ask({ authority: a, identity, metadata: { SERVICE_ACCOUNT: 'other' } }), 'PERMISSION_DENIED')
  })

  test('have no rights of a namespace that has the name of theirs', async () => {
    const identity = 'spiffe://a.example/ns/istio-system/sa/istiod'
    const namespace = 'istio-system'
    const asking = { authority: a, identity, namespace }
    assert.equal(await ask(asking), 'served')
    assert.equal(await ask({ ...asking, typeUrl: 'istio.io/debug', names: ['configz'] }), 'UNAUTHENTICATED')
    assert.equal(await ask({ ...asking, typeUrl: 'istio.io/debug/syncz' }), 'UNAUTHENTICATED')
    const exported = { typeUrl: 'networking.istio.io/v1/ServiceEntry', metadata: { GENERATOR: 'api' } }
    assert.equal(await ask({ ...asking, ...exported }), 'UNAUTHENTICATED')
  })

  test('get no certificate of this mesh', async () => {
    assert.equal(await clients().certificate({ authority: a, identity: inA }), 'UNAUTHENTICATED')
  })

  test('are known no more once mesh config does not name their roots', async () => {
    const identity = 'spiffe://b.example/ns/app/sa/web'
    assert.equal(await ask({ authority: b, identity }), 'served')
    const body = { data: meshOf({ pem: a.pem, trustDomains: ['a.example'] }) }
    await kube.patch(resources.configMaps, istioConfigMap, { kind: 'merge', body })
    await discovery.log.until(/clients of a trust domain are known no more/)
    assert.equal(await ask({ authority: b, identity }), 'UNAUTHENTICATED')
    assert.equal(await ask({ authority: a, identity: inA }), 'served')
  })
})
