// A mesh of several clusters: how remote ones come, change, fail and go, and what is written into them.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { createCaClient } from '../../src/ca/client/index.ts'
import type { KubeClient } from '../../src/kube/index.ts'
import { workload } from '../../src/proto/index.ts'
import { configMapOf, createRunningPod, meshRoots, namespaceNamed, tokenOf } from '../support/cluster-objects.ts'
import { type RunningDiscovery, startDiscovery } from '../support/discovery.ts'
import { startTestApi, type TestApi } from '../support/embedded-api.ts'
import { observeXds, type XdsObserver } from '../support/xds-observer.ts'

const multiNetwork = { AMBIENT_ENABLE_MULTI_NETWORK: 'true' }
const far = 'c2//Pod/app/far'

interface ClusterStatus {
  readonly id: string
  readonly syncStatus: string
  readonly problem?: string
}

function secretOf(name: string, kubeconfigs: Readonly<Record<string, string>>): KubeObject {
  const data = Object.entries(kubeconfigs).map(([id, text]) => [id, Buffer.from(text).toString('base64')])
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'istio-system', name, labels: { 'istio/multiCluster': 'true' } },
    ...{ data: Object.fromEntries(data) },
  }
}

const kubeconfigOf = ({ server }: TestApi): string => readFileSync(server.kubeconfig, 'utf8')

function workloadIn({ held }: XdsObserver, name: string): workload.Workload {
  const { type } = fromBinary(workload.AddressSchema, held.get(name)?.body ?? new Uint8Array())
  assert.equal(type.case, 'workload', name)
  return type.value
}

async function prepare(client: KubeClient, pod: string, ip: string): Promise<void> {
  for (const name of ['istio-system', 'app']) await client.create(resources.namespaces, namespaceNamed(name))
  await createRunningPod(client, { namespace: 'app', name: pod }, { ip: ip, account: 'web' })
}

describe('a mesh of several clusters', { timeout: 90_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-clusters-'))
  let config: TestApi
  let remote: TestApi
  before(async () => {
    ;[config, remote] = await Promise.all([startTestApi(), startTestApi()])
    await prepare(config.client, 'local', '10.0.0.1')
    await prepare(remote.client, 'far', '10.2.0.1')
  })
  after(async () => {
    for (const one of [config, remote]) await one?.[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true })
  })

  const start = (
    env: Readonly<Record<string, string>> = {},
    flags: Readonly<Record<string, string>> = {},
  ): Promise<RunningDiscovery> =>
    startDiscovery({
      kubeconfig: config.server.kubeconfig,
      stateDir: dir,
      flags: { grpcAddr: '127.0.0.1:0', networksConfig: join(dir, 'none'), ...flags },
      env,
    })
  const statusOf = async (discovery: RunningDiscovery, id: string): Promise<ClusterStatus | undefined> =>
    ((await discovery.page('clusterz')) as ClusterStatus[]).find((one) => one.id === id)

  test('kubeconfigs that cannot be used are reported and hold up neither the start nor the others', async () => {
    const { client } = config
    const exec = JSON.stringify({
      'current-context': 'x',
      contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
      clusters: [{ name: 'x', cluster: { server: 'https://127.0.0.1:1' } }],
      users: [{ name: 'x', user: { exec: { command: 'sh' } } }],
    })
    const down = exec.replace('"exec":{"command":"sh"}', '"token":"t"')
    await client.create(resources.secrets, secretOf('a', { c2: kubeconfigOf(remote), bad: 'nonsense: [', runs: exec }))
    await client.create(resources.secrets, secretOf('b', { down, c2: down, Kubernetes: kubeconfigOf(remote) }))
    const env = { ...multiNetwork, PILOT_REMOTE_CLUSTER_TIMEOUT: '1s' }
    await using discovery = await start(env)
    await using proxy = observeXds(discovery.ports.plainGrpc ?? 0)
    await proxy.until(() => proxy.held.has(far) && proxy.held.has('Kubernetes//Pod/app/local'))

    assert.equal((await statusOf(discovery, 'c2'))?.syncStatus, 'synced')
    assert.equal((await statusOf(discovery, 'down'))?.syncStatus, 'timeout')
    for (const [id, reason] of [
      ['bad', /the kubeconfig of cluster bad in istio-system\/a/],
      ['runs', /exec is not allowed/],
    ] as const) {
      const status = await statusOf(discovery, id)
      assert.equal(status?.syncStatus, 'closed')
      assert.match(status?.problem ?? '', reason)
    }
    await discovery.log.until(/a remote cluster is not read in time.*down/)
    await discovery.log.until(/two kubeconfigs are for one cluster.*c2/)
    await discovery.log.until(/names this cluster as a remote one/)
    assert.equal(await discovery.metric('remote_cluster_sync_timeouts_total'), '1')
    assert.equal(await discovery.metric('istiod_remote_cluster_sync_status{cluster="runs"}'), '0')

    // What is mended is taken up.
    await client.replace(resources.secrets, secretOf('b', { down: kubeconfigOf(remote) }))
    await proxy.until(() => proxy.held.has('down//Pod/app/far'))
    assert.equal((await statusOf(discovery, 'down'))?.syncStatus, 'synced')
    for (const name of ['a', 'b']) await client.delete(resources.secrets, { namespace: 'istio-system', name })
    await proxy.until(() => ![...proxy.held.keys()].some((name) => /^(c2|down)\//.test(name)))
  })

  test('a cluster that is down at the start joins when it comes up, and one that goes down keeps its workloads', async () => {
    const late = await startTestApi()
    const kubeconfig = kubeconfigOf(late)
    await prepare(late.client, 'far', '10.2.0.1')
    await late.stop()
    await config.client.create(resources.secrets, secretOf('late', { c2: kubeconfig }))
    const env = { ...multiNetwork, PILOT_REMOTE_CLUSTER_TIMEOUT: '1s' }
    try {
      await using discovery = await start(env)
      await using proxy = observeXds(discovery.ports.plainGrpc ?? 0)
      await proxy.client.synced
      assert.ok(!proxy.held.has(far))
      assert.equal((await statusOf(discovery, 'c2'))?.syncStatus, 'timeout')
      await late.start()
      await proxy.until(() => proxy.held.has(far))
      assert.equal((await statusOf(discovery, 'c2'))?.syncStatus, 'synced')

      await late.stop()
      await createRunningPod(config.client, { namespace: 'app', name: 'meanwhile' }, { ip: '10.0.0.2', account: 'web' })
      await proxy.until(() => proxy.held.has('Kubernetes//Pod/app/meanwhile'))
      assert.ok(proxy.held.has(far))
      await late.start()
      await createRunningPod(late.client, { namespace: 'app', name: 'after' }, { ip: '10.2.0.2', account: 'web' })
      await proxy.until(() => proxy.held.has('c2//Pod/app/after'))
    } finally {
      await config.client.delete(resources.secrets, { namespace: 'istio-system', name: 'late' })
      await late[Symbol.asyncDispose]()
    }
  })

  test('the trust domain of a cluster is that of its own mesh config, followed', async () => {
    const { client } = remote
    const mesh = (domain: string) => configMapOf('istio-system', 'istio', { mesh: `trustDomain: ${domain}` })
    await client.create(resources.configMaps, mesh('two.example'))
    await config.client.create(resources.secrets, secretOf('two', { c2: kubeconfigOf(remote) }))
    await using discovery = await start(multiNetwork)
    await using proxy = observeXds(discovery.ports.plainGrpc ?? 0)
    await proxy.client.synced
    assert.equal(workloadIn(proxy, far).trustDomain, 'two.example')
    assert.equal(workloadIn(proxy, 'Kubernetes//Pod/app/local').trustDomain, '')
    await client.replace(resources.configMaps, mesh('three.example'))
    await proxy.until(() => workloadIn(proxy, far).trustDomain === 'three.example')
    await client.delete(resources.configMaps, { namespace: 'istio-system', name: 'istio' })
    await proxy.until(() => workloadIn(proxy, far).trustDomain === '')
    await config.client.delete(resources.secrets, { namespace: 'istio-system', name: 'two' })
  })

  test('a node proxy gets certificates for pods of its node in its own cluster, by whatever name that goes', async () => {
    const node = { namespace: 'istio-system', name: 'zt' }
    const tokens = new Map<TestApi, string>()
    for (const [of, account, ip] of [
      [config, 'here', '10.0.0.9'],
      [remote, 'there', '10.2.0.9'],
    ] as const) {
      const pod = await createRunningPod(of.client, node, { ip, account: 'ztunnel' })
      await createRunningPod(of.client, { namespace: 'app', name: account }, { ip: ip.replace(/9$/, '10'), account })
      tokens.set(of, await tokenOf(of.client, { namespace: 'istio-system', name: 'ztunnel' }, { pod }))
    }
    await config.client.create(resources.secrets, secretOf('two', { c2: kubeconfigOf(remote) }))
    await using discovery = await start({}, { clusterAliases: 'formerly=c2,before=Kubernetes' })
    const roots = await meshRoots(config.client)
    const ask = async (by: TestApi, clusterId: string, account: string): Promise<string> => {
      await using ca = createCaClient({
        address: `127.0.0.1:${discovery.ports.grpc}`,
        roots: { kind: 'pem', pem: roots },
        alternativeHostname: 'istiod.istio-system.svc',
        token: () => tokens.get(by) ?? '',
        clusterId,
        impersonate: true,
      })
      const { leaf } = await ca.requestCertificate(`spiffe://cluster.local/ns/app/sa/${account}`)
      return new X509Certificate(leaf).subjectAltName ?? ''
    }
    const granted = (account: string): string => `URI:spiffe://cluster.local/ns/app/sa/${account}`
    for (const name of ['', 'Kubernetes', 'before']) {
      assert.equal(await ask(config, name, 'here'), granted('here'), name)
      await assert.rejects(ask(config, name, 'there'), /impersonation authentication failure/, name)
    }
    for (const name of ['c2', 'formerly']) {
      assert.equal(await ask(remote, name, 'there'), granted('there'), name)
      await assert.rejects(ask(remote, name, 'here'), /impersonation authentication failure/, name)
      await assert.rejects(ask(config, name, 'there'), /authenticate failure/, name)
    }
    await assert.rejects(ask(remote, '', 'there'), /authenticate failure/)
    await config.client.delete(resources.secrets, { namespace: 'istio-system', name: 'two' })
  })

  test('a cluster that asks for it gets the root into its namespaces, but those that are not looked at', async () => {
    const root = (namespace: string) => ({ namespace, name: 'istio-ca-root-cert' })
    const mesh = configMapOf('istio-system', 'istio', { mesh: 'discoverySelectors: [{matchLabels: {mesh: "yes"}}]' })
    await config.client.create(resources.configMaps, mesh)
    await remote.client.create(resources.namespaces, namespaceNamed('unseen'))
    await config.client.create(resources.secrets, secretOf('two', { c2: kubeconfigOf(remote) }))
    await using _ = await start()
    const present = (api: TestApi, namespace: string) =>
      api.until(resources.configMaps, root(namespace), (object) => object)
    await present(config, 'istio-system')
    assert.equal(await remote.client.get(resources.configMaps, root('istio-system')), undefined)

    const annotations = { 'topology.istio.io/controlPlaneClusters': 'other, Kubernetes' }
    const ask = (body: object) =>
      remote.client.patch(resources.namespaces, { name: 'istio-system' }, { kind: 'merge', body: { metadata: body } })
    await ask({ annotations })
    await present(remote, 'istio-system')
    await remote.client.create(resources.namespaces, namespaceNamed('seen', { mesh: 'yes' }))
    await present(remote, 'seen')
    assert.equal(await remote.client.get(resources.configMaps, root('unseen')), undefined)
    assert.equal(await remote.client.get(resources.configMaps, root('app')), undefined)

    // Selectors are followed.
    await config.client.replace(resources.configMaps, configMapOf('istio-system', 'istio', { mesh: '' }))
    await present(remote, 'unseen')
    await present(config, 'app')

    // It is no longer asked for: what is deleted stays so.
    await ask({ annotations: { 'topology.istio.io/controlPlaneClusters': null } })
    await remote.until(resources.leases, { namespace: 'istio-system', name: 'lateen-leader' }, (lease) =>
      (lease?.spec as { holderIdentity?: string } | undefined)?.holderIdentity === '' ? true : undefined,
    )
    await remote.client.delete(resources.configMaps, root('seen'))
    await config.client.delete(resources.configMaps, root('app'))
    await present(config, 'app')
    assert.equal(await remote.client.get(resources.configMaps, root('seen')), undefined)
    await config.client.delete(resources.secrets, { namespace: 'istio-system', name: 'two' })
    await config.client.delete(resources.configMaps, { namespace: 'istio-system', name: 'istio' })
  })

  test('kubeconfigs may come from a directory in place of the Secrets', async () => {
    const path = join(dir, 'kubeconfigs.d')
    mkdirSync(path)
    const kubeconfig = kubeconfigOf(remote)
    const named = (cluster: string): string =>
      kubeconfig.replaceAll(/(name|cluster|context): lateen$/gm, `$1: ${cluster}`)
    await config.client.create(resources.secrets, secretOf('two', { unheeded: kubeconfig }))
    writeFileSync(join(path, 'broken'), '[')
    const env = { ...multiNetwork, PILOT_MULTICLUSTER_KUBECONFIG_PATH: path }
    await using discovery = await start(env)
    await using proxy = observeXds(discovery.ports.plainGrpc ?? 0)
    await proxy.client.synced
    await discovery.log.until(/a kubeconfig of a remote cluster cannot be read.*broken/)
    writeFileSync(join(dir, 'staged'), named('c2'))
    renameSync(join(dir, 'staged'), join(path, 'two'))
    await proxy.until(() => proxy.held.has(far))
    assert.equal(await statusOf(discovery, 'unheeded'), undefined)
    rmSync(join(path, 'two'))
    await proxy.until(() => !proxy.held.has(far))
    await config.client.delete(resources.secrets, { namespace: 'istio-system', name: 'two' })
  })
})
