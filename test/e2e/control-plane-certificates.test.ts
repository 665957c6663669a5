// Who signs, and how trust reaches everybody: a root that is renewed, material from a Secret, another signer of the cluster.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { createCaClient } from '../../src/ca/client/index.ts'
import { createKubeClient, type KubeClient } from '../../src/kube/index.ts'
import { silentLogging } from '../../src/observability/index.ts'
import { mesh } from '../../src/proto/control-plane/index.ts'
import { certificateBlocks, isSameBundle } from '../../src/util/index.ts'
import { createDeltaClient } from '../../src/xds/client/index.ts'
import { makeCa, makeCrl, makeLeaf, type TestCa } from '../support/ca.ts'
import { ensureServiceAccount, namespaceNamed, tokenOf } from '../support/cluster-objects.ts'
import { followSigner } from '../support/cluster-signer.ts'
import { type RunningDiscovery, startDiscovery } from '../support/discovery.ts'
import { startApi } from '../support/embedded-api.ts'
import type { LogLines } from '../support/log-lines.ts'

type ConfigMap = KubeObject & { readonly data?: Readonly<Record<string, string>> }
type TrustBundle = KubeObject<{ readonly signerName?: string; readonly trustBundle: string }>

const identity = 'spiffe://cluster.local/ns/app/sa/web'

interface Plane extends AsyncDisposable {
  readonly client: KubeClient
  readonly stateDir: string
  /** Starts the control plane with these variables; returns what it logs. */
  start(env: Readonly<Record<string, string>>): Promise<LogLines>
  /** Resolves with the data of the ConfigMap of namespace `app` once it fits. */
  configMap(
    name: string,
    fits: (data: Readonly<Record<string, string>>) => boolean,
  ): Promise<Readonly<Record<string, string>>>
  /** A certificate for the service account web, asked for with these roots. */
  certificate(roots: string): ReturnType<ReturnType<typeof createCaClient>['requestCertificate']>
  /** A proxy of the service account web that asks for its own configuration. */
  proxy(roots: string): AsyncDisposable & {
    /** Resolves with the roots it was told once they fit. */
    until(fits: (roots: readonly string[]) => boolean): Promise<readonly string[]>
  }
}

const istioConfigMap = { namespace: 'istio-system', name: 'istio' }

async function createPlane(): Promise<Plane> {
  const stateDir = await mkdtemp(join(tmpdir(), 'lateen-certificates-'))
  const api = await startApi(stateDir)
  const client = await createKubeClient({ kubeconfig: api.kubeconfig })
  for (const name of ['istio-system', 'app']) {
    await client.create(resources.namespaces, namespaceNamed(name))
  }
  await ensureServiceAccount(client, 'app', 'web')
  let discovery: RunningDiscovery | undefined
  const token = () => tokenOf(client, { namespace: 'app', name: 'web' })
  return {
    client,
    stateDir,
    async start(env) {
      discovery = await startDiscovery({ kubeconfig: api.kubeconfig, stateDir, env })
      return discovery.log
    },
    async configMap(name, fits) {
      await using informer = client.informer<ConfigMap>(resources.configMaps, { namespace: 'app' })
      return await new Promise((resolve) => {
        informer.subscribe((changes) => {
          for (const { kind, object } of changes) {
            const { data = {} } = object
            if (kind !== 'deleted' && object.metadata.name === name && fits(data)) resolve(data)
          }
        })
      })
    },
    proxy(roots) {
      let told: readonly string[] | undefined
      const looks = new Set<() => void>()
      const proxy = createDeltaClient({
        address: `127.0.0.1:${discovery?.ports.grpc}`,
        transport: { kind: 'tls', roots: () => roots, serverName: 'istiod.istio-system.svc' },
        headers: async () => ({ authorization: `Bearer ${await token()}`, clusterid: 'Kubernetes' }),
        node: { id: 'sidecar~10.0.0.1~web-0.app~app.svc.cluster.local', metadata: { SERVICE_ACCOUNT: 'web' } },
        types: [{ typeUrl: 'type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig' }],
        log: silentLogging().scope('proxy'),
        onUpdate({ resources: [resource] }) {
          if (resource === undefined) assert.fail('the configuration of a proxy is never removed')
          told = fromBinary(mesh.ProxyConfigSchema, resource.body).caCertificatesPem
          for (const look of [...looks]) look()
          return { rejected: [] }
        },
      })
      return {
        until: (fits) =>
          new Promise((resolve) => {
            const look = (): void => {
              if (told === undefined || !fits(told)) return
              looks.delete(look)
              resolve(told)
            }
            looks.add(look)
            look()
          }),
        [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose](),
      }
    },
    async certificate(roots) {
      await using ca = createCaClient({
        address: `127.0.0.1:${discovery?.ports.grpc}`,
        roots: { kind: 'pem', pem: roots },
        alternativeHostname: 'istiod.istio-system.svc',
        token,
        clusterId: 'Kubernetes',
        impersonate: false,
      })
      return await ca.requestCertificate(identity)
    },
    async [Symbol.asyncDispose]() {
      await discovery?.stop()
      await client.close()
      await api[Symbol.asyncDispose]()
      await rm(stateDir, { recursive: true })
    },
  }
}

const isSignedBy = (leaf: string, root: string): boolean =>
  new X509Certificate(leaf).verify(new X509Certificate(root).publicKey)

describe('certificates of the control plane', { timeout: 150_000 }, () => {
  test('the next root reaches everybody before it signs; who trusts only the old one is still served until then', async () => {
    await using plane = await createPlane()
    await plane.start({
      CITADEL_SELF_SIGNED_CA_CERT_TTL: '60s',
      CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE: '95',
      CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: '500ms',
      CITADEL_ENABLE_JITTER_FOR_ROOT_CERT_ROTATOR: 'false',
      LATEEN_ROOT_ROTATION_OVERLAP: '4s',
      DEFAULT_WORKLOAD_CERT_TTL: '30s',
    })
    const { 'root-cert.pem': first = '' } = await plane.configMap('istio-ca-root-cert', () => true)
    assert.equal(certificateBlocks(first).length, 1)
    const { 'root-cert.pem': both = '' } = await plane.configMap(
      'istio-ca-root-cert',
      (data) => certificateBlocks(data['root-cert.pem'] ?? '').length === 2,
    )
    const next = certificateBlocks(both).find((pem) => pem !== certificateBlocks(first)[0]) ?? ''
    const before = await plane.certificate(first)
    assert.ok(isSignedBy(before.leaf, first), 'the announced root does not sign yet')
    assert.ok(isSameBundle(before.roots.join(''), both))
    await plane.configMap('istio-ca-root-cert', (data) => certificateBlocks(data['root-cert.pem'] ?? '')[0] === next)
    const after = await plane.certificate(both)
    assert.ok(isSignedBy(after.leaf, next))
    assert.ok(
      after.roots.some((root) => root.trim() === certificateBlocks(first)[0]?.trim()),
      'the old root is still trusted',
    )
  })

  /** Of an authority below a root, with revocations of both. */
  async function plugIn({ client }: Plane) {
    const root = await makeCa({ name: 'root' })
    const signer = await makeCa({ name: 'one', issuer: root })
    const crl = (await makeCrl(root, [])) + (await makeCrl(signer, ['0a']))
    const encoded = (data: Readonly<Record<string, string>>) =>
      Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]))
    await client.create(resources.secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: 'istio-system', name: 'cacerts' },
      data: encoded({
        'ca-cert.pem': signer.pem,
        'ca-key.pem': signer.key,
        'root-cert.pem': root.pem,
        'cert-chain.pem': signer.pem,
        'ca-crl.pem': crl,
      }),
    } as KubeObject)
    return { root, signer, crl }
  }

  test('signs with the material of the Secret cacerts, and hands out its revocations', async () => {
    await using plane = await createPlane()
    const { root, signer, crl } = await plugIn(plane)
    await plane.start({ USE_REMOTE_CERTS: 'true' })
    const { 'root-cert.pem': roots = '' } = await plane.configMap('istio-ca-root-cert', () => true)
    assert.ok(isSameBundle(roots, root.pem))
    const handedOut = await plane.configMap('istio-ca-crl', () => true)
    assert.equal(handedOut['ca-crl.pem'], crl)
    const certificate = await plane.certificate(roots)
    assert.ok(isSignedBy(certificate.leaf, signer.pem))
    assert.equal(certificate.intermediates.length, 1)
    const secret = await plane.client.get(resources.secrets, { namespace: 'istio-system', name: 'istio-ca-secret' })
    assert.equal(secret, undefined, 'no root of our own is made')
  })

  test('hands out revocations under another name, or none, where that is asked for', async () => {
    for (const isWanted of [true, false]) {
      await using plane = await createPlane()
      const { crl } = await plugIn(plane)
      await plane.start({
        USE_REMOTE_CERTS: 'true',
        PILOT_CRL_CONFIGMAP: 'lists',
        PILOT_ENABLE_CA_CRL: String(isWanted),
      })
      if (isWanted) assert.equal((await plane.configMap('lists', () => true))['ca-crl.pem'], crl)
      await plane.configMap('istio-ca-root-cert', () => true)
      const { items } = await plane.client.list(resources.configMaps, { namespace: 'app' })
      const names = items.map(({ metadata }) => metadata.name).filter((name) => name !== 'kube-root-ca.crt')
      assert.deepEqual(names.sort(), isWanted ? ['istio-ca-root-cert', 'lists'] : ['istio-ca-root-cert'])
    }
  })

  test('has another signer of the cluster certify what it approves', async () => {
    await using plane = await createPlane()
    const root = await makeCa({ name: 'cluster signer' })
    await using signer = followSigner(plane.client, 'example.com/mesh', root)
    await plane.start({ EXTERNAL_CA: 'ISTIOD_RA_KUBERNETES_API', K8S_SIGNER: 'example.com/mesh' })
    const certificate = await plane.certificate(root.pem)
    assert.ok(isSignedBy(certificate.leaf, root.pem))
    assert.equal(new X509Certificate(certificate.leaf).subjectAltName, `URI:${identity}`)
    assert.ok(isSameBundle(certificate.roots.join(''), root.pem))
    for (const name of signer.names) assert.match(name, /^csr-workload-./)
    assert.deepEqual(signer.usages.at(-1), ['digital signature', 'key encipherment', 'server auth', 'client auth'])
    const { 'root-cert.pem': handedOut = '' } = await plane.configMap('istio-ca-root-cert', () => true)
    assert.ok(isSameBundle(handedOut, root.pem))
    await signer.emptied
  })

  test('serves with a certificate of another signer of the cluster where that is asked for, and signs by itself', async () => {
    await using plane = await createPlane()
    const root = await makeCa({ name: 'serving signer' })
    await using _signer = followSigner(plane.client, 'example.com/serving', root)
    await plane.start({ PILOT_CERT_PROVIDER: 'k8s.io/example.com/serving' })
    const certificate = await plane.certificate(root.pem)
    const { 'root-cert.pem': own = '' } = await plane.configMap('istio-ca-root-cert', () => true)
    assert.ok(isSignedBy(certificate.leaf, own))
    assert.ok(!isSignedBy(certificate.leaf, root.pem))
  })

  test('a certificate that nobody makes and no file holds ends the start', async () => {
    await using plane = await createPlane()
    await assert.rejects(plane.start({ PILOT_CERT_PROVIDER: 'custom' }), { code: 'INVALID_SETTING' })
  })

  test('hands the roots out in a ClusterTrustBundle where that is asked for, and puts it right when somebody changes it', async () => {
    await using plane = await createPlane()
    const { client } = plane
    const name = 'istio.io:istiod-ca:root-cert'
    const key = { name }
    await using bundles = client.informer<TrustBundle>(resources.clusterTrustBundles)
    const seen: { readonly kind: string; readonly spec: TrustBundle['spec'] }[] = []
    const looks = new Set<() => void>()
    bundles.subscribe((changes) => {
      for (const { kind, object } of changes) {
        if (object.metadata.name === name) seen.push({ kind, spec: object.spec })
      }
      for (const look of looks) look()
    })
    const until = (count: number): Promise<void> =>
      new Promise((resolve) => {
        const look = (): void => (seen.length >= count ? resolve() : undefined)
        looks.add(look)
        look()
      })
    await plane.start({ ENABLE_CLUSTER_TRUST_BUNDLE_API: 'true' })
    await until(1)
    const roots = seen[0]?.spec?.trustBundle ?? ''
    assert.equal(seen[0]?.spec?.signerName, 'istio.io/istiod-ca')
    assert.ok(isSignedBy((await plane.certificate(roots)).leaf, roots))

    const foreign = (await makeCa({ name: 'foreign' })).pem
    const body = { spec: { trustBundle: foreign } }
    await client.patch(resources.clusterTrustBundles, key, { kind: 'merge', body })
    await until(3)
    await client.delete(resources.clusterTrustBundles, key)
    await until(5)
    assert.deepEqual(
      seen.map(({ kind, spec }) => [kind, spec?.trustBundle === roots]),
      [
        ['added', true],
        ['updated', false],
        ['updated', true],
        ['deleted', true],
        ['added', true],
      ],
    )
    const configMaps = await client.list(resources.configMaps, { namespace: 'app' })
    assert.ok(!configMaps.items.some(({ metadata }) => metadata.name === 'istio-ca-root-cert'))
  })

  test('takes up a new intermediate from mounted files, and refuses another root', async () => {
    await using plane = await createPlane()
    const root = await makeCa({ name: 'root' })
    const mounted = join(plane.stateDir, 'cacerts')
    await mkdir(mounted)
    const mount = async (signer: TestCa, roots: string): Promise<void> => {
      const files = { 'ca-cert.pem': signer.pem, 'ca-key.pem': signer.key, 'cert-chain.pem': signer.pem }
      for (const [file, text] of Object.entries({ ...files, 'root-cert.pem': roots })) {
        await writeFile(join(mounted, file), text)
      }
    }
    const [first, second] = [await makeCa({ name: 'one', issuer: root }), await makeCa({ name: 'two', issuer: root })]
    await mount(first, root.pem)
    await plane.client.create(resources.secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: 'istio-system', name: 'istio-ca-secret' },
      data: { 'ca-cert.pem': '' },
    } as KubeObject)
    const lines = await plane.start({ ROOT_CA_DIR: mounted })
    await lines.until(/a root of our own is there, too; the plugged-in one signs/)
    assert.ok(isSignedBy((await plane.certificate(root.pem)).leaf, first.pem))
    await mount(second, root.pem)
    await lines.until(/the signing certificate was reloaded/)
    assert.ok(isSignedBy((await plane.certificate(root.pem)).leaf, second.pem))
    await mount(await makeCa({ name: 'three' }), (await makeCa({ name: 'three' })).pem)
    await lines.until(/changed signing material is refused/)
    assert.ok(isSignedBy((await plane.certificate(root.pem)).leaf, second.pem))
  })

  test('tells proxies the roots of a mesh with several, also those that another authority publishes, as they change', async () => {
    await using plane = await createPlane()
    const [pem, later] = [(await makeCa({ name: 'mesh' })).pem, (await makeCa({ name: 'later' })).pem]
    const foreign = (await makeCa({ name: 'foreign' })).pem
    const meshOf = (...caCertificates: readonly object[]) => ({ mesh: JSON.stringify({ caCertificates }) })
    const named = [{ pem }, { pem: foreign, trustDomains: ['elsewhere.example'] }]
    await plane.client.create(resources.configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'istio-system', name: 'istio' },
      data: meshOf(...named),
    } as KubeObject)
    const lines = await plane.start({ ISTIO_MULTIROOT_MESH: 'true' })
    await lines.until(/another trust domain.*elsewhere\.example/)
    const { 'root-cert.pem': own = '' } = await plane.configMap('istio-ca-root-cert', () => true)
    await using proxy = plane.proxy(own)
    assert.ok(isSameBundle((await proxy.until(() => true)).join(''), own + pem))
    const body = { data: meshOf(...named, { pem: later }) }
    await plane.client.patch(resources.configMaps, istioConfigMap, { kind: 'merge', body })
    assert.ok(isSameBundle((await proxy.until((roots) => roots.length === 3)).join(''), own + pem + later))
    const broken = { data: meshOf({ pem: (await makeLeaf(await makeCa({ name: 'x' }), [identity])).pem }) }
    await plane.client.patch(resources.configMaps, istioConfigMap, { kind: 'merge', body: broken })
    await lines.until(/roots are refused; the last ones stay/)
    assert.equal((await proxy.until(() => true)).length, 3)
  })

  test('incomplete material ends the start', async () => {
    await using plane = await createPlane()
    await plane.client.create(resources.secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: 'istio-system', name: 'cacerts' },
      data: { 'ca-cert.pem': '' },
    } as KubeObject)
    await assert.rejects(plane.start({ USE_REMOTE_CERTS: 'true' }), { code: 'INCOMPLETE' })
  })
})
