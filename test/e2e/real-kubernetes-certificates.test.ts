// Who is believed and who signs where the API server is the one that Kubernetes ships: its tokens, its signing requests, its trust bundles.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { status } from '@grpc/grpc-js'
import { importPKCS8, SignJWT } from 'jose'
import { type KubeObject, resources, type WorkloadEntry } from '../../src/api/index.ts'
import { createCaClient } from '../../src/ca/client/index.ts'
import { workload } from '../../src/proto/index.ts'
import { isSameBundle } from '../../src/util/index.ts'
import { makeCa } from '../support/ca.ts'
import {
  createRunningPod,
  ensureServiceAccount,
  meshRoots,
  namespaceNamed,
  tokenOf,
  workloadGroupOf,
} from '../support/cluster-objects.ts'
import { followSigner } from '../support/cluster-signer.ts'
import type { RunningDiscovery } from '../support/discovery.ts'
import { kubeApiServerIsMissing } from '../support/kube-apiserver.ts'
import { type MeshCluster, startMeshCluster } from '../support/mesh-cluster.ts'
import { openStream } from '../support/virtual-machine.ts'
import { observeXds } from '../support/xds-observer.ts'

type TrustBundle = KubeObject<{ readonly signerName?: string; readonly trustBundle: string }>

const signerName = 'example.com/mesh'
const identityOf = (account: string): string => `spiffe://cluster.local/ns/app/sa/${account}`
const app = (name: string) => ({ namespace: 'app', name })

describe('certificates and tokens on Kubernetes', { timeout: 180_000, skip: kubeApiServerIsMissing }, () => {
  let cluster: MeshCluster
  before(async () => {
    cluster = await startMeshCluster({ rights: ['--signer', signerName, '--trust-bundles'] })
    for (const account of ['web', 'other']) await ensureServiceAccount(cluster.client, 'app', account)
  })
  after(() => cluster?.[Symbol.asyncDispose]())

  async function certificateFor(
    { ports }: RunningDiscovery,
    token: string,
    identity: string,
    { roots, impersonate = false }: { readonly roots?: string; readonly impersonate?: boolean } = {},
  ) {
    await using ca = createCaClient({
      address: `127.0.0.1:${ports.grpc}`,
      roots: { kind: 'pem', pem: roots ?? (await meshRoots(cluster.client)) },
      alternativeHostname: 'istiod.istio-system.svc',
      token: () => token,
      clusterId: 'Kubernetes',
      impersonate,
    })
    return await ca.requestCertificate(identity)
  }

  test('a token is good for its own account and audience, until it expires or its pod is deleted', async () => {
    const { client, api } = cluster
    await using discovery = await cluster.startDiscovery()
    const ask = (token: string) => certificateFor(discovery, token, identityOf('web'))
    const issued = await ask(await tokenOf(client, app('web')))
    assert.equal(new X509Certificate(issued.leaf).subjectAltName, `URI:${identityOf('web')}`)
    assert.ok(isSameBundle(issued.roots.join(''), await meshRoots(client)))

    await assert.rejects(
      ask(await tokenOf(client, app('web'), { audience: 'elsewhere' })),
      /UNAUTHENTICATED|authenticat/i,
    )
    await assert.rejects(ask('nonsense'), /UNAUTHENTICATED|authenticat/i)

    const account = await client.get(resources.serviceAccounts, app('web'))
    const signed = async (expiresAt: number) =>
      new SignJWT({
        'kubernetes.io': { namespace: 'app', serviceaccount: { name: 'web', uid: account?.metadata.uid } },
      })
        .setProtectedHeader({ alg: 'RS256' })
        .setIssuer('https://kubernetes.default.svc.cluster.local')
        .setSubject('system:serviceaccount:app:web')
        .setAudience('istio-ca')
        .setIssuedAt(expiresAt - 3_600)
        .setNotBefore(expiresAt - 3_600)
        .setExpirationTime(expiresAt)
        .sign(await importPKCS8(api.accountKey, 'RS256'))
    const now = Math.floor(Date.now() / 1000)
    await ask(await signed(now + 600))
    await assert.rejects(ask(await signed(now - 600)), /UNAUTHENTICATED|authenticat/i)

    const pod = await createRunningPod(client, app('short'), { ip: '10.1.0.9', account: 'web' })
    await ask(await tokenOf(client, app('web'), { pod }))
    // The API server remembers for some seconds which tokens it found good: this one it has not seen before.
    const bound = await tokenOf(client, app('web'), { pod })
    await client.delete(resources.pods, app('short'), { gracePeriodSeconds: 0 })
    await assert.rejects(ask(bound), /UNAUTHENTICATED|authenticat/i)
    assert.deepEqual(cluster.refusals(), [])
  })

  test('a node proxy gets certificates for the pods of its own node, and for those alone', async () => {
    const { client } = cluster
    await using discovery = await cluster.startDiscovery()
    const proxyPod = await createRunningPod(
      client,
      { namespace: 'istio-system', name: 'ztunnel-1' },
      { ip: '10.0.0.5', account: 'ztunnel' },
    )
    await createRunningPod(client, app('web-0'), { ip: '10.1.0.1', account: 'web' })
    const elsewhere: KubeObject = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: app('other-0'),
      spec: { nodeName: 'node2', serviceAccountName: 'other', containers: [{ name: 'a', image: 'host' }] },
    }
    await client.create(resources.pods, elsewhere)
    const account = { namespace: 'istio-system', name: 'ztunnel' }
    const token = await tokenOf(client, account, { pod: proxyPod })
    const roots = await meshRoots(client)
    await using observer = observeXds(discovery.ports.grpc, { tls: { roots, token } })
    await observer.until(() => observer.held.has('Kubernetes//Pod/app/web-0'))

    const ask = (bearer: string, name: string) =>
      certificateFor(discovery, bearer, identityOf(name), { impersonate: true })
    const { leaf } = await ask(token, 'web')
    assert.equal(new X509Certificate(leaf).subjectAltName, `URI:${identityOf('web')}`)
    await assert.rejects(ask(token, 'other'))
    await discovery.log.until(/no instances of app\/other found on node node1/)
    // Of a token that names no pod nobody knows the node; and who is no node proxy speaks for itself alone.
    await assert.rejects(ask(await tokenOf(client, account), 'web'))
    await discovery.log.until(/the token of the caller is not bound to a pod/)
    await assert.rejects(ask(await tokenOf(client, app('other')), 'web'))
    await discovery.log.until(/app\/other\) is not allowed to impersonate/)
    for (const name of ['web-0', 'other-0']) await client.delete(resources.pods, app(name), { gracePeriodSeconds: 0 })
  })

  test('a workload outside of the cluster registers itself, and is gone with its stream', async () => {
    const { client } = cluster
    await client.create(resources.namespaces, namespaceNamed('vms'))
    await ensureServiceAccount(client, 'vms', 'vm')
    const group = workloadGroupOf('vms', 'wg', 'vm', { probe: { httpGet: { port: 8080 } } })
    await client.create(resources.workloadGroups, group)
    await using discovery = await cluster.startDiscovery({ env: { PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: '500ms' } })
    await using observer = observeXds(discovery.ports.plainGrpc ?? 0)
    const name = 'wg-10.8.0.1-vm-net'
    const uid = `Kubernetes/networking.istio.io/WorkloadEntry/vms/${name}`
    const statusNow = (): workload.WorkloadStatus | undefined => {
      const held = observer.held.get(uid)
      const type = held === undefined ? undefined : fromBinary(workload.AddressSchema, held.body).type
      return type?.case === 'workload' ? type.value.status : undefined
    }
    const roots = await meshRoots(client)
    const machine = openStream(discovery.ports.grpc, {
      roots,
      token: await tokenOf(client, { namespace: 'vms', name: 'vm' }),
    })
    await machine.answered
    machine.say(true)
    await observer.until(() => statusNow() === workload.WorkloadStatus.HEALTHY)
    machine.say(false, 'connection refused')
    await observer.until(() => statusNow() === workload.WorkloadStatus.UNHEALTHY)
    const entry = await client.get<WorkloadEntry>(resources.workloadEntries, { namespace: 'vms', name })
    assert.equal(entry?.status?.conditions?.find(({ type }) => type === 'Healthy')?.message, 'connection refused')
    machine.close()
    await observer.until(() => statusNow() === undefined)

    const stranger = openStream(discovery.ports.grpc, { roots, token: await tokenOf(client, app('web')) })
    assert.equal((await stranger.ended).code, status.PERMISSION_DENIED)
    stranger.close()
  })

  test('a signer of the cluster certifies what the control plane approves', async () => {
    const { client } = cluster
    const root = await makeCa({ name: 'cluster signer' })
    await using signer = followSigner(client, signerName, root)
    await using discovery = await cluster.startDiscovery({
      env: { EXTERNAL_CA: 'ISTIOD_RA_KUBERNETES_API', K8S_SIGNER: signerName },
    })
    const token = await tokenOf(client, app('web'))
    const certificate = await certificateFor(discovery, token, identityOf('web'), { roots: root.pem })
    assert.ok(new X509Certificate(certificate.leaf).verify(new X509Certificate(root.pem).publicKey))
    assert.equal(new X509Certificate(certificate.leaf).subjectAltName, `URI:${identityOf('web')}`)
    await signer.emptied
    assert.deepEqual(cluster.refusals(), [])
  })

  test('the roots are handed out in a ClusterTrustBundle, which is put right when somebody changes it', async () => {
    const { client, api } = cluster
    await using _ = await cluster.startDiscovery({ env: { ENABLE_CLUSTER_TRUST_BUNDLE_API: 'true' } })
    const resource = resources.clusterTrustBundles
    const key = { name: 'istio.io:istiod-ca:root-cert' }
    const roots = await meshRoots(client)
    const isOurs = ({ spec }: TrustBundle) =>
      spec?.signerName === 'istio.io/istiod-ca' && isSameBundle(spec.trustBundle, roots)
    const untilOurs = (uid?: string) =>
      api.until<TrustBundle, TrustBundle>(resource, key, (found) =>
        found !== undefined && isOurs(found) && found.metadata.uid !== uid ? found : undefined,
      )
    const first = await untilOurs()
    const foreign = (await makeCa({ name: 'foreign' })).pem
    await client.patch(resource, key, { kind: 'merge', body: { spec: { trustBundle: foreign } } })
    await untilOurs()
    await client.delete(resource, key)
    await untilOurs(first.metadata.uid)
    assert.deepEqual(cluster.refusals(), [])
  })
})
