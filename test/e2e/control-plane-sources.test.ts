// Where the control plane takes its configuration from, and what it says of itself: files, other clusters, other control planes.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { istioResources, type KubeObject, type Resource, resources } from '../../src/api/index.ts'
import { openXdsSource } from '../../src/config/index.ts'
import type { DiscoveryPorts } from '../../src/istiod/index.ts'
import type { EmbeddedApi } from '../../src/kube/apiserver/index.ts'
import { createKubeClient, type KubeClient } from '../../src/kube/index.ts'
import { silentLogging } from '../../src/observability/index.ts'
import { meshConfig } from '../../src/proto/control-plane/index.ts'
import { createDeltaClient } from '../../src/xds/client/index.ts'
import {
  configMapOf,
  createRunningPod,
  ensureServiceAccount,
  meshRoots,
  namespaceNamed,
  tokenOf,
} from '../support/cluster-objects.ts'
import { type RunningDiscovery, startDiscovery } from '../support/discovery.ts'
import { startApi } from '../support/embedded-api.ts'
import { observeXds, type XdsObserver } from '../support/xds-observer.ts'

const log = silentLogging().scope('test')

const policy = (name: string, action = 'DENY'): KubeObject => ({
  apiVersion: 'security.istio.io/v1',
  kind: 'AuthorizationPolicy',
  metadata: { namespace: 'app', name },
  spec: { action, rules: [{ from: [{ source: { namespaces: ['x'] } }] }] },
})

const createPod = (client: KubeClient, name: string, ip: string): Promise<KubeObject> =>
  createRunningPod(client, { namespace: 'app', name }, { ip, account: 'web' })

describe('the sources of the control plane', { timeout: 60_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-sources-'))
  let config: EmbeddedApi
  let remote: EmbeddedApi
  let client: KubeClient
  let remoteClient: KubeClient
  let discovery: RunningDiscovery
  let ports: DiscoveryPorts
  let proxy: XdsObserver

  const write = (file: string, objects: readonly KubeObject[]): void => {
    const path = join(dir, 'manifests', file)
    writeFileSync(`${path}.new`, objects.map((object) => JSON.stringify(object)).join('\n---\n'))
    renameSync(`${path}.new`, path)
  }
  const page = async (path: string): Promise<unknown> => (await fetch(`http://${ports.http[1]}${path}`)).json()
  const secret = (kubeconfig: string): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'istio-system', name: 'remote', labels: { 'istio/multiCluster': 'true' } },
    ...{ data: { c2: Buffer.from(kubeconfig).toString('base64') } },
  })

  before(async () => {
    for (const name of ['config', 'remote', 'manifests']) mkdirSync(join(dir, name))
    ;[config, remote] = await Promise.all([startApi(join(dir, 'config')), startApi(join(dir, 'remote'))])
    client = await createKubeClient({ kubeconfig: config.kubeconfig })
    remoteClient = await createKubeClient({ kubeconfig: remote.kubeconfig })
    for (const one of [client, remoteClient]) {
      await one.create(resources.namespaces, namespaceNamed('istio-system'))
      await one.create(resources.namespaces, namespaceNamed('app', { 'istio.io/dataplane-mode': 'ambient' }))
    }
    await createPod(client, 'local', '10.0.0.1')
    await createPod(remoteClient, 'far', '10.2.0.1')
    write('policies.yaml', [policy('first')])
    discovery = await startDiscovery({
      kubeconfig: config.kubeconfig,
      stateDir: dir,
      flags: {
        grpcAddr: '127.0.0.1:0',
        networksConfig: join(dir, 'none'),
        configDir: join(dir, 'manifests'),
      },
      env: { AMBIENT_ENABLE_MULTI_NETWORK: 'true' },
    })
    ports = discovery.ports
    proxy = observeXds(ports.plainGrpc ?? 0)
    await proxy.client.synced
  })
  after(async () => {
    await proxy?.[Symbol.asyncDispose]()
    await discovery?.stop()
    for (const one of [client, remoteClient]) await one.close()
    for (const one of [config, remote]) await one[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true })
  })

  test('files: policies come from them and follow them; those of the cluster do not count', async () => {
    await proxy.until(() => proxy.held.has('app/first'))
    await client.create(resources.authorizationPolicies, policy('of-the-cluster'))
    write('policies.yaml', [policy('second')])
    await proxy.until(() => proxy.held.has('app/second') && !proxy.held.has('app/first'))
    assert.ok(!proxy.held.has('app/of-the-cluster'))
  })

  test('files: an invalid object is named with its place, and the last valid one serves on', async () => {
    write('policies.yaml', [policy('second', 'FORBID')])
    type Problem = { name: string; where: string; served: string; problems: string[] }
    let problems: readonly Problem[] = []
    while (problems.length === 0) {
      problems = (await page('/debug/problemsz')) as readonly Problem[]
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    assert.equal(problems[0]?.where, `${join(dir, 'manifests', 'policies.yaml')}:1`)
    assert.equal(problems[0]?.served, 'the last valid one')
    assert.match(problems[0]?.problems[0] ?? '', /spec\.action/)
    assert.ok(proxy.held.has('app/second'))
    write('policies.yaml', [policy('second')])
  })

  test('objects of a tag count from when the tag points to this revision until it does no longer', async () => {
    const tagged = policy('tagged')
    tagged.metadata.labels = { 'istio.io/rev': 'stable' }
    write('policies.yaml', [policy('second'), tagged, policy('third')])
    await proxy.until(() => proxy.held.has('app/third'))
    assert.ok(!proxy.held.has('app/tagged'))
    const key = { namespace: 'istio-system', name: 'stable' }
    const labels = { 'istio.io/tag': 'stable', 'istio.io/rev': 'default' }
    const tag: KubeObject = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { ...key, labels },
      spec: { ports: [{ port: 1 }] },
    }
    await client.create(resources.services, tag)
    await proxy.until(() => proxy.held.has('app/tagged'))
    await client.delete(resources.services, key)
    await proxy.until(() => !proxy.held.has('app/tagged'))
    write('policies.yaml', [policy('second')])
    await proxy.until(() => !proxy.held.has('app/third'))
  })

  test('another cluster: its workloads come with its Secret, stay while its credentials change, and go with it', async () => {
    const far = 'c2//Pod/app/far'
    const kubeconfig = readFileSync(remote.kubeconfig, 'utf8')
    const status = async () =>
      ((await page('/debug/clusterz')) as { id: string; syncStatus: string }[]).find(({ id }) => id === 'c2')
        ?.syncStatus
    assert.ok(!proxy.held.has(far))
    await client.create(resources.secrets, secret(kubeconfig))
    await proxy.until(() => proxy.held.has(far))
    assert.equal(await status(), 'synced')
    let wasGone = false
    const watching = proxy.until(() => {
      wasGone ||= !proxy.held.has(far)
      return proxy.held.has('c2//Pod/app/later')
    })
    await client.replace(resources.secrets, secret(`# rotated\n${kubeconfig}`))
    await createPod(remoteClient, 'later', '10.2.0.2')
    await watching
    assert.equal(wasGone, false)
    // Not usable: what is in force stays.
    await client.replace(resources.secrets, secret('current-context: nowhere'))
    await createPod(remoteClient, 'latest', '10.2.0.3')
    await proxy.until(() => proxy.held.has('c2//Pod/app/latest'))
    await client.delete(resources.secrets, { namespace: 'istio-system', name: 'remote' })
    await proxy.until(() => ![...proxy.held.keys()].some((name) => name.startsWith('c2/')))
    assert.ok(proxy.held.has('Kubernetes//Pod/app/local'))
    assert.equal(await status(), undefined)
  })

  test('another control plane may take configuration from here when it proves to be one, and nobody else may', async () => {
    const roots = await meshRoots(client)
    const otherIn = async (namespace: string): Promise<string> => {
      await ensureServiceAccount(client, namespace, 'other')
      return tokenOf(client, { namespace, name: 'other' })
    }
    const open = (token: string, namespace: string, ended: (reason: string) => void = () => {}) =>
      openXdsSource({
        address: `127.0.0.1:${ports.grpc}`,
        transport: { kind: 'tls', roots: () => roots, serverName: 'istiod.istio-system.svc' },
        headers: () => ({ authorization: `Bearer ${token}`, clusterid: 'Kubernetes' }),
        nodeId: `sidecar~127.0.0.1~istiod.${namespace}~${namespace}.svc.cluster.local`,
        namespace,
        kinds: [resources.authorizationPolicies],
        log: { ...log, log: (_level, _message, fields) => ended(String(fields?.reason)) },
      })
    await using source = open(await otherIn('istio-system'), 'istio-system')
    await using informer = source.informer(resources.authorizationPolicies)
    await informer.synced
    assert.deepEqual(
      informer.list().map(({ metadata, spec }) => [metadata.namespace, metadata.name, spec]),
      [['app', 'second', policy('second').spec]],
    )
    const refused = Promise.withResolvers<string>()
    await using stranger = open(await otherIn('app'), 'app', refused.resolve)
    assert.match(await refused.promise, /restricted to the control-plane \(root\) namespace/)
    assert.deepEqual(stranger.informer(resources.authorizationPolicies).list(), [])
  })

  test('another control plane gets every Istio kind, what stands for Services, and mesh config', async () => {
    const roots = await meshRoots(client)
    await ensureServiceAccount(client, 'istio-system', 'other')
    const token = await tokenOf(client, { namespace: 'istio-system', name: 'other' })
    const web: KubeObject = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'app', name: 'web' },
      spec: { selector: { app: 'web' }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
    }
    const { spec: webSpec } = await client.create<KubeObject<{ clusterIP: string }>>(resources.services, web as never)
    write('routes.yaml', [
      {
        apiVersion: 'networking.istio.io/v1beta1',
        kind: 'VirtualService',
        metadata: { namespace: 'app', name: 'routes' },
        spec: { hosts: ['web'], http: [{ timeout: '1m30s', route: [{ destination: { host: 'web' } }] }] },
      },
    ])
    await using source = openXdsSource({
      address: `127.0.0.1:${ports.grpc}`,
      transport: { kind: 'tls', roots: () => roots, serverName: 'istiod.istio-system.svc' },
      headers: () => ({ authorization: `Bearer ${token}`, clusterid: 'Kubernetes' }),
      nodeId: 'sidecar~127.0.0.1~istiod.istio-system~istio-system.svc.cluster.local',
      namespace: 'istio-system',
      // The last is not known there: nobody waits for it.
      kinds: [...Object.values(istioResources), { ...istioResources.sidecars, version: 'v9', kind: 'Novelty' }],
      log,
    })
    const first = <T extends KubeObject>(resource: Resource, name: string) =>
      new Promise<T>((resolve) => {
        const informer = source.informer<T>(resource)
        informer.subscribe(() => {
          const found = informer.get({ namespace: 'app', name })
          if (found !== undefined) resolve(found)
        })
      })
    const [routes, synthetic] = await Promise.all([
      first(istioResources.virtualServices, 'routes'),
      first(istioResources.serviceEntries, 'synthetic-web'),
    ])
    assert.deepEqual(routes.spec, {
      hosts: ['web'],
      http: [{ timeout: '90s', route: [{ destination: { host: 'web' } }] }],
    })
    assert.deepEqual(synthetic.spec, {
      hosts: ['web.app.svc.cluster.local'],
      addresses: [webSpec?.clusterIP],
      ports: [{ number: 80, name: 'http', protocol: 'HTTP', targetPort: 8080 }],
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      workloadSelector: { labels: { app: 'web' } },
    })
    await source.informer(istioResources.sidecars).synced

    const received = Promise.withResolvers<Uint8Array>()
    await using meshClient = createDeltaClient({
      address: `127.0.0.1:${ports.grpc}`,
      transport: { kind: 'tls', roots: () => roots, serverName: 'istiod.istio-system.svc' },
      headers: () => ({ authorization: `Bearer ${token}`, clusterid: 'Kubernetes' }),
      node: {
        id: 'sidecar~127.0.0.1~istiod.istio-system~istio-system.svc.cluster.local',
        metadata: { GENERATOR: 'api', NAMESPACE: 'istio-system' },
      },
      types: [{ typeUrl: 'core/v1alpha1/MeshConfig', bodyType: 'type.googleapis.com/istio.mesh.v1alpha1.MeshConfig' }],
      onUpdate({ resources: [config] }) {
        if (config !== undefined) received.resolve(config.body)
        return { rejected: [] }
      },
      log,
    })
    await meshClient.synced
    const config = fromBinary(meshConfig.MeshConfigSchema, await received.promise)
    assert.deepEqual([config.rootNamespace, config.trustDomain], ['istio-system', 'cluster.local'])
    rmSync(join(dir, 'manifests', 'routes.yaml'))
  })

  test('mesh config names other sources while the process runs; they count once they are read', async () => {
    mkdirSync(join(dir, 'others'))
    writeFileSync(join(dir, 'others', 'policies.yaml'), JSON.stringify(policy('other')))
    const named = async (addresses: readonly string[]): Promise<void> => {
      const mesh = JSON.stringify({ configSources: addresses.map((address) => ({ address })) })
      const configMap = configMapOf('istio-system', 'istio', { mesh })
      const exists = (await client.get(resources.configMaps, configMap.metadata)) !== undefined
      await (exists ? client.replace(resources.configMaps, configMap) : client.create(resources.configMaps, configMap))
    }
    await proxy.until(() => proxy.held.has('app/second'))
    proxy.takeReceived()
    await named([`fs://${join(dir, 'others')}`])
    await proxy.until(() => proxy.held.has('app/other') && !proxy.held.has('app/second'))

    // Of several the first counts; here the cluster has one of its own.
    await named([`fs://${join(dir, 'others')}`, 'k8s://'])
    await proxy.until(() => proxy.held.has('app/of-the-cluster') && proxy.held.has('app/other'))
    assert.deepEqual(
      proxy
        .takeReceived()
        .filter((name) => name.startsWith('app/'))
        .sort(),
      ['app/of-the-cluster', 'app/other'],
    )

    // What cannot be opened, and who does not answer, leave the sources in force.
    await named([`fs://${join(dir, 'absent')}`])
    await discovery.log.until(/cannot be opened; those in force stay.*absent/)
    await named(['xds://127.0.0.1:1'])
    await discovery.log.until(/once they are read.*xds:/)
    assert.ok(proxy.held.has('app/other') && proxy.held.has('app/of-the-cluster'))

    await client.delete(resources.configMaps, { namespace: 'istio-system', name: 'istio' })
    await proxy.until(() => proxy.held.has('app/second') && !proxy.held.has('app/other'))
    assert.ok(!proxy.held.has('app/of-the-cluster'))
  })

  test('pages of the control plane are not for web pages that reach this machine by another name', async () => {
    const [host = '', port = ''] = ports.http[1]?.split(':') ?? []
    const statusOf = (name: string) =>
      new Promise<number>((resolve, reject) => {
        const request = httpRequest({ host, port, path: '/debug/configz', headers: { host: name } }, (response) => {
          response.resume()
          resolve(response.statusCode ?? 0)
        })
        request.on('error', reject).end()
      })
    assert.equal(await statusOf(`localhost:${port}`), 200)
    assert.equal(await statusOf('evil.example'), 401)
  })
})
