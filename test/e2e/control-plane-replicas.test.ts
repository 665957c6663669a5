// Two replicas of the control plane as processes against one API server: they serve the same, one of them writes, and the loss of
// one under traffic costs its clients only what changed meanwhile.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { createKubeClient, type KubeClient } from '../../src/kube/index.ts'
import { type ApiProcess, startApiProcess } from '../support/api-process.ts'
import { createRunningPod, meshRoots, namespaceNamed, tokenOf } from '../support/cluster-objects.ts'
import { type RecordedRequests, recordRequests } from '../support/recorded-requests.ts'
import { balance, type Replica, startReplica } from '../support/replicas.ts'
import { untilObject } from '../support/until-object.ts'
import { type Held, observeXds, type XdsObserver } from '../support/xds-observer.ts'

const nodeProxy = (port: number, roots: string, token: string): XdsObserver =>
  observeXds(port, {
    tls: { roots, token },
    times: { leastRetryMs: 10, mostRetryMs: 200, connectTimeoutMs: 2_000 },
  })

const resourceOf = (name: string): string => `Kubernetes//Pod/app/${name}`
const sorted = (held: ReadonlyMap<string, Held>) => [...held].sort(([a], [b]) => (a < b ? -1 : 1))

describe('two replicas of the control plane', { timeout: 120_000 }, () => {
  let api: ApiProcess
  let kube: KubeClient
  let replicas: Replica[]
  let recorded: ReadonlyMap<string, RecordedRequests>
  let roots: string
  let token: string

  const createPod = (name: string, last: number): Promise<KubeObject> =>
    createRunningPod(
      kube,
      { namespace: name === 'zt' ? 'istio-system' : 'app', name },
      { ip: `10.1.${last >> 8}.${last & 255}`, account: name === 'zt' ? 'ztunnel' : 'default' },
    )

  async function leader(): Promise<string | undefined> {
    const lease = await kube.get<KubeObject<{ holderIdentity?: string }>>(resources.leases, {
      namespace: 'istio-system',
      name: 'lateen-leader',
    })
    return lease?.spec?.holderIdentity
  }

  before(async () => {
    api = await startApiProcess()
    kube = await createKubeClient({ kubeconfig: api.kubeconfig })
    for (const name of ['istio-system', 'app']) await kube.create(resources.namespaces, namespaceNamed(name))
    const pod = await createPod('zt', 1)
    for (let at = 0; at < 40; at += 1) await createPod(`p${at}`, 10 + at)
    // Together, so that they race for the root and for the lease.
    const names = ['istiod-a', 'istiod-b']
    recorded = new Map(
      await Promise.all(names.map(async (name) => [name, await recordRequests(api.kubeconfig, name)] as const)),
    )
    replicas = await Promise.all([...recorded].map(([name, { kubeconfig }]) => startReplica(kubeconfig, name)))
    token = await tokenOf(kube, { namespace: 'istio-system', name: 'ztunnel' }, { pod })
    roots = await meshRoots(kube)
  })

  after(async () => {
    for (const replica of replicas ?? []) await replica.kill()
    for (const one of recorded?.values() ?? []) await one[Symbol.asyncDispose]()
    await kube?.close()
    await api?.[Symbol.asyncDispose]()
  })

  test('serve the same bytes under the same versions', async () => {
    const proxies = replicas.map(({ port }) => nodeProxy(port, roots, token))
    for (const proxy of proxies) {
      await proxy.client.synced
      await proxy.until(() => proxy.held.size >= 41)
    }
    const [a, b] = proxies.map(({ held }) => sorted(held))
    assert.ok((a ?? []).length >= 41)
    assert.deepEqual(a, b)
    for (const proxy of proxies) await proxy[Symbol.asyncDispose]()
  })

  test('one of them writes; the other one touches nothing but the lease', async () => {
    type WithStatus = KubeObject<
      unknown,
      { readonly addresses?: readonly unknown[]; readonly conditions?: readonly unknown[] }
    >
    const from = new Map([...recorded].map(([name, { requests }]) => [name, requests.length]))
    const has = (of: 'addresses' | 'conditions') => (object: WithStatus | undefined) => object?.status?.[of]?.[0]
    // One after the other: what one replica has written, the other one would find to be right.
    for (let at = 0; at < 5; at += 1) {
      const name = `written${at}`
      await kube.create(resources.namespaces, namespaceNamed(name))
      await untilObject(kube, resources.configMaps, { namespace: name, name: 'istio-ca-root-cert' }, (root) => root)
      await kube.create(resources.serviceEntries, {
        apiVersion: 'networking.istio.io/v1',
        kind: 'ServiceEntry',
        metadata: { namespace: name, name },
        spec: { hosts: [`${name}.example`], resolution: 'DNS', ports: [{ number: 443, name: 'tls', protocol: 'TLS' }] },
      } as KubeObject)
      await untilObject(kube, resources.serviceEntries, { namespace: name, name }, has('addresses'))
      await kube.create(resources.authorizationPolicies, {
        apiVersion: 'security.istio.io/v1',
        kind: 'AuthorizationPolicy',
        metadata: { namespace: name, name },
        spec: { action: 'DENY', rules: [{ to: [{ operation: { ports: ['9999'] } }] }] },
      } as KubeObject)
      await untilObject(kube, resources.authorizationPolicies, { namespace: name, name }, has('conditions'))
    }
    const leading = await leader()
    const written = (name: string): readonly string[] => {
      const since = recorded.get(name)?.requests.slice(from.get(name)) ?? []
      const writes = since.filter(({ method }) => method !== 'GET').map(({ path }) => path)
      return writes.filter((path) => !path.endsWith('/leases/lateen-leader'))
    }
    const [second = ''] = [...recorded.keys()].filter((name) => name !== leading)
    assert.deepEqual(written(second), [])
    for (const kind of ['configmaps', 'serviceentries', 'authorizationpolicies']) {
      assert.ok(
        written(leading ?? '').some((path) => path.includes(kind)),
        kind,
      )
    }
  })

  test('when the leader is killed under traffic, its clients get from the other one only what changed, and the other one writes', async () => {
    const holder = await leader()
    const first = replicas.find(({ name }) => name === holder)
    const second = replicas.find(({ name }) => name !== holder)
    assert.ok(first && second, `one of the replicas leads, not ${holder}`)
    const service = await balance([first, second])
    const proxy = nodeProxy(service.port, roots, token)
    await proxy.client.synced
    await proxy.until(() => proxy.held.size >= 41)
    proxy.takeReceived()

    const created: string[] = []
    const create = async (from: number, to: number): Promise<void> => {
      for (let at = from; at < to; at += 1) {
        await createPod(`late${at}`, 300 + at)
        created.push(`late${at}`)
      }
    }
    await create(0, 5)
    const more = create(5, 30)
    await first.kill()
    await more
    await proxy.until(() => created.every((name) => proxy.held.has(resourceOf(name))))
    await kube.delete(resources.pods, { namespace: 'app', name: 'p0' }, { gracePeriodSeconds: 0 })
    await proxy.until(() => !proxy.held.has(resourceOf('p0')))

    const unchanged = proxy.takeReceived().filter((name) => !/\/late\d+$/.test(name))
    assert.deepEqual(unchanged, [], 'nothing that the client held is sent again')
    const fresh = nodeProxy(second.port, roots, token)
    await fresh.client.synced
    await fresh.until(() => fresh.held.size === proxy.held.size)
    assert.deepEqual(sorted(proxy.held), sorted(fresh.held))
    await fresh[Symbol.asyncDispose]()
    await proxy[Symbol.asyncDispose]()
    await service.close()

    await using configMaps = kube.informer<KubeObject & { data: Record<string, string> }>(resources.configMaps, {
      namespace: 'later',
    })
    const written = new Promise<string | undefined>((resolve) => {
      configMaps.subscribe((changes) => {
        for (const { kind, object } of changes) {
          if (kind === 'added' && object.metadata.name === 'istio-ca-root-cert') resolve(object.data['root-cert.pem'])
        }
      })
    })
    await kube.create(resources.namespaces, namespaceNamed('later'))
    assert.equal(await written, roots)
    assert.equal(await leader(), second.name)
  })
})
