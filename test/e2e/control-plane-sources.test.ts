// Where the control plane takes its configuration from, and what it says of itself: files, other clusters, other control planes.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { openXdsSource } from '../../src/config/index.ts'
import { type DiscoveryPorts, readSettings, runDiscovery } from '../../src/istiod/index.ts'
import { type EmbeddedApi, startEmbeddedApi } from '../../src/kube/apiserver/index.ts'
import { createKubeClient, type KubeClient } from '../../src/kube/index.ts'
import { silentLogging } from '../../src/observability/index.ts'
import { createDeltaClient, type DeltaClient, type DeltaUpdate } from '../../src/xds/client/index.ts'

const address = 'type.googleapis.com/istio.workload.Address'
const authorization = 'type.googleapis.com/istio.security.Authorization'
const log = silentLogging().scope('test')

const namespaceOf = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels: { 'istio.io/dataplane-mode': 'ambient' } },
})
const policy = (name: string, action = 'DENY'): KubeObject => ({
  apiVersion: 'security.istio.io/v1',
  kind: 'AuthorizationPolicy',
  metadata: { namespace: 'app', name },
  spec: { action, rules: [{ from: [{ source: { namespaces: ['x'] } }] }] },
})

async function createPod(client: KubeClient, name: string, ip: string): Promise<void> {
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'app', name: 'web' } }
  await client.create(resources.serviceAccounts, account).catch(() => {})
  await client.create(resources.pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'app', name },
    spec: { nodeName: 'n', serviceAccountName: 'web', containers: [{ name: 'app', image: 'host' }] },
  } as KubeObject)
  const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions: [{ type: 'Ready', status: 'True' }] }
  const key = { namespace: 'app', name }
  await client.patch(resources.pods, key, { kind: 'merge', body: { status } }, { subresource: 'status' })
}

/** A client of the port without TLS, and what it holds. */
function connect(port: number) {
  const held = new Set<string>()
  const looks = new Set<() => void>()
  const client: DeltaClient = createDeltaClient({
    address: `127.0.0.1:${port}`,
    transport: { kind: 'plaintext' },
    headers: () => ({}),
    node: { id: 'ztunnel~127.0.0.1~zt.istio-system~istio-system.svc.cluster.local', metadata: { NODE_NAME: 'n' } },
    types: [{ typeUrl: authorization }, { typeUrl: address }],
    log,
    onUpdate({ resources: changed, removed }: DeltaUpdate) {
      for (const { name } of changed) held.add(name)
      for (const name of removed) held.delete(name)
      for (const look of [...looks]) look()
      return { rejected: [] }
    },
  })
  return {
    client,
    held,
    until: (holds: () => boolean) =>
      new Promise<void>((resolve) => {
        const look = (): void => {
          if (!holds()) return
          looks.delete(look)
          resolve()
        }
        looks.add(look)
        look()
      }),
  }
}

describe('the sources of the control plane', { timeout: 60_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-sources-'))
  const stop = new AbortController()
  const logging = silentLogging()
  let config: EmbeddedApi
  let remote: EmbeddedApi
  let client: KubeClient
  let remoteClient: KubeClient
  let ports: DiscoveryPorts
  let running: Promise<void>
  let proxy: ReturnType<typeof connect>

  const startApi = (name: string) =>
    startEmbeddedApi({
      stateDir: join(dir, name),
      listen: [{ host: '127.0.0.1', port: 0 }],
      serviceCidr: '10.96.0.0/16',
      onError: (error) => assert.fail(String(error)),
    })
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
    ;[config, remote] = await Promise.all([startApi('config'), startApi('remote')])
    client = await createKubeClient({ kubeconfig: config.kubeconfig })
    remoteClient = await createKubeClient({ kubeconfig: remote.kubeconfig })
    for (const one of [client, remoteClient]) {
      await one.create(resources.namespaces, namespaceOf('istio-system'))
      await one.create(resources.namespaces, namespaceOf('app'))
    }
    await createPod(client, 'local', '10.0.0.1')
    await createPod(remoteClient, 'far', '10.2.0.1')
    write('policies.yaml', [policy('first')])
    const flags = {
      kubeconfig: config.kubeconfig,
      httpAddr: '127.0.0.1:0',
      secureGRPCAddr: '127.0.0.1:0',
      grpcAddr: '127.0.0.1:0',
      monitoringAddr: '127.0.0.1:0',
      meshConfig: join(dir, 'none'),
      networksConfig: join(dir, 'none'),
      configDir: join(dir, 'manifests'),
      ctrlz_port: '0',
    }
    const env = { ROOT_CA_DIR: join(dir, 'none'), POD_NAME: 'istiod-1', AMBIENT_ENABLE_MULTI_NETWORK: 'true' }
    const started = Promise.withResolvers<DiscoveryPorts>()
    running = runDiscovery(
      { settings: readSettings(flags, env, 2), version: 'test', jwtRule: '', logging, started: started.resolve },
      stop.signal,
    )
    running.catch(started.reject)
    ports = await started.promise
    proxy = connect(ports.plainGrpc ?? 0)
    await proxy.client.synced
  })
  after(async () => {
    await proxy?.client[Symbol.asyncDispose]()
    stop.abort()
    await running
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
    await proxy.until(() => ![...proxy.held].some((name) => name.startsWith('c2/')))
    assert.ok(proxy.held.has('Kubernetes//Pod/app/local'))
    assert.equal(await status(), undefined)
  })

  test('another control plane may take configuration from here when it proves to be one, and nobody else may', async () => {
    const key = { namespace: 'istio-system', name: 'istio-ca-secret' }
    const held = await client.get<KubeObject & { data: Record<string, string> }>(resources.secrets, key)
    const roots = Buffer.from(held?.data['root-cert.pem'] ?? '', 'base64').toString()
    const tokenOf = async (namespace: string): Promise<string> => {
      await client
        .create(resources.serviceAccounts, {
          apiVersion: 'v1',
          kind: 'ServiceAccount',
          metadata: { namespace, name: 'other' },
        })
        .catch(() => {})
      const answer = await client.createSubresource<{ status: { token: string } }>(
        resources.serviceAccounts,
        { namespace, name: 'other' },
        'token',
        { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: ['istio-ca'] } },
      )
      return answer.status.token
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
    await using source = open(await tokenOf('istio-system'), 'istio-system')
    await using informer = source.informer(resources.authorizationPolicies)
    await informer.synced
    assert.deepEqual(
      informer.list().map(({ metadata, spec }) => [metadata.namespace, metadata.name, spec]),
      [['app', 'second', policy('second').spec]],
    )
    const refused = Promise.withResolvers<string>()
    await using stranger = open(await tokenOf('app'), 'app', refused.resolve)
    assert.match(await refused.promise, /restricted to the control-plane \(root\) namespace/)
    assert.deepEqual(stranger.informer(resources.authorizationPolicies).list(), [])
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
