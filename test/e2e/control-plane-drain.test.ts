// Replicas of the control plane that come, go in order and age: their clients move, lose nothing and get nothing twice; clients that hang are let go.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { createCaClient } from '../../src/ca/client/index.ts'
import { createKubeClient, type KubeClient } from '../../src/kube/index.ts'
import { type ApiProcess, startApiProcess } from '../support/api-process.ts'
import { createRunningPod, meshRoots, namespaceNamed, tokenOf } from '../support/cluster-objects.ts'
import { startDiscovery } from '../support/discovery.ts'
import { balance, type Replica, startReplica } from '../support/replicas.ts'
import { observeXds, type XdsObserver } from '../support/xds-observer.ts'

const pods = 20

describe('replicas that come and go', { timeout: 180_000 }, () => {
  let api: ApiProcess
  let kube: KubeClient
  let token: string
  let roots: string
  let replicas: Replica[] = []
  let stateDir: string

  const observe = (port: number): XdsObserver =>
    observeXds(port, {
      tls: { roots, token },
      times: { leastRetryMs: 10, mostRetryMs: 200, connectTimeoutMs: 2_000 },
    })
  const start = async (name: string, ...flags: string[]): Promise<Replica> => {
    const replica = await startReplica(api.kubeconfig, name, flags)
    replicas.push(replica)
    return replica
  }

  before(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'lateen-drain-'))
    api = await startApiProcess()
    kube = await createKubeClient({ kubeconfig: api.kubeconfig })
    for (const name of ['istio-system', 'app']) await kube.create(resources.namespaces, namespaceNamed(name))
    const proxy = { namespace: 'istio-system', name: 'zt' }
    const pod = await createRunningPod(kube, proxy, { ip: '10.1.0.1', account: 'ztunnel' })
    for (let at = 0; at < pods; at += 1) {
      await createRunningPod(kube, { namespace: 'app', name: `p${at}` }, { ip: `10.1.1.${at}`, account: 'default' })
    }
    const first = await startReplica(api.kubeconfig, 'first')
    token = await tokenOf(kube, { namespace: 'istio-system', name: 'ztunnel' }, { pod })
    roots = await meshRoots(kube)
    await first.stop()
  })
  after(async () => {
    await kube?.close()
    await api?.[Symbol.asyncDispose]()
    await rm(stateDir, { recursive: true })
  })
  afterEach(endReplicas)
  async function endReplicas(): Promise<void> {
    for (const replica of replicas) await replica.kill()
    replicas = []
  }

  test('one that is told to stop ends in order: requests are answered, clients move, and another leads at once', async () => {
    await using stack = new AsyncDisposableStack()
    const [a, b] = [await start('a'), await start('b')]
    const service = await balance([a, b])
    stack.defer(() => service.close())
    const proxies = [1, 2, 3].map(() => stack.use(observe(service.port)))
    for (const proxy of proxies) {
      await proxy.client.synced
      await proxy.until(() => proxy.held.size > pods)
      proxy.takeReceived()
    }
    assert.equal(await leader(), 'a')

    await using ca = createCaClient({
      address: `127.0.0.1:${service.port}`,
      roots: { kind: 'pem', pem: roots },
      alternativeHostname: 'istiod.istio-system.svc',
      token: () => token,
      clusterId: 'Kubernetes',
      impersonate: true,
    })
    const failures: string[] = []
    const sign = async (): Promise<void> => {
      for (let count = 0; count < 30; ) {
        try {
          await ca.requestCertificate('spiffe://cluster.local/ns/app/sa/default')
          count += 1
        } catch (error) {
          // Its channel has to find the other replica first.
          failures.push(String(error))
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
      }
    }
    const signing = [sign(), sign()]
    const stopping = performance.now()
    const stopped = a.stop()
    assert.equal(await stopped, 0)
    assert.ok(performance.now() - stopping < 10_000, 'it does not wait for its time to run out')
    await Promise.all(signing)
    for (const failure of failures) assert.match(failure, /Unavailable/, 'nothing that was under way is dropped')
    assert.ok(performance.now() - stopping < 10_000, 'the other one signs soon')

    await createRunningPod(kube, { namespace: 'app', name: 'late' }, { ip: '10.1.2.1', account: 'default' })
    for (const proxy of proxies) {
      await proxy.until(() => proxy.held.has('Kubernetes//Pod/app/late'))
      assert.deepEqual(new Set(proxy.takeReceived()), new Set(['Kubernetes//Pod/app/late']))
    }
    while ((await leader()) !== 'b') await new Promise((resolve) => setTimeout(resolve, 50))
    assert.ok(performance.now() - stopping < 12_000, 'the lease was given back: nobody waits for it to run out')
  })

  test('clients spread over a replica that joins later, and get nothing again', async () => {
    const age = ['--keepaliveMaxServerConnectionAge', '2s']
    await using stack = new AsyncDisposableStack()
    const serving = [await start('c', ...age)]
    const service = await balance(serving, true)
    stack.defer(() => service.close())
    const proxies = Array.from({ length: 6 }, () => stack.use(observe(service.port)))
    for (const proxy of proxies) {
      await proxy.client.synced
      await proxy.until(() => proxy.held.size > pods)
      proxy.takeReceived()
    }
    const joined = await start('d', ...age)
    serving.push(joined)
    while ((await clientsOf(joined)) < 2) await new Promise((resolve) => setTimeout(resolve, 100))
    assert.deepEqual(
      proxies.flatMap((proxy) => proxy.takeReceived()),
      [],
    )
  })

  test('a client that hangs is let go, and one that lives stays', async () => {
    const flags = { keepaliveInterval: '300ms', keepaliveTimeout: '300ms' }
    await using discovery = await startDiscovery({ kubeconfig: api.kubeconfig, stateDir, flags })
    const relay = await freezingRelay(discovery.ports.grpc)
    await using stack = new AsyncDisposableStack()
    stack.defer(() => relay.close())
    const [lives, hangs] = [stack.use(observe(discovery.ports.grpc)), stack.use(observe(relay.port))]
    await Promise.all([lives.client.synced, hangs.client.synced])
    const count = async (): Promise<number> => ((await discovery.page('adsz')) as { totalClients: number }).totalClients
    assert.equal(await count(), 2)
    relay.freeze()
    while ((await count()) > 1) await new Promise((resolve) => setTimeout(resolve, 50))
    assert.equal(lives.client.connected, true)
    await createRunningPod(kube, { namespace: 'app', name: 'after' }, { ip: '10.1.2.2', account: 'default' })
    await lives.until(() => lives.held.has('Kubernetes//Pod/app/after'))
  })

  async function leader(): Promise<string | undefined> {
    const lease = await kube.get<KubeObject<{ holderIdentity?: string }>>(resources.leases, {
      namespace: 'istio-system',
      name: 'lateen-leader',
    })
    return lease?.spec?.holderIdentity
  }
})

async function clientsOf({ http }: Replica): Promise<number> {
  const answer = await fetch(`http://${http}/debug/adsz`)
  return ((await answer.json()) as { totalClients: number }).totalClients
}

/** Passes everything on until it is frozen; then it neither reads nor closes, as a host that hangs. */
async function freezingRelay(port: number) {
  const sockets = new Set<Socket>()
  const server = createServer((from) => {
    const to = connect(port, '127.0.0.1')
    for (const socket of [from, to]) {
      sockets.add(socket)
      socket.on('error', () => {})
    }
    from.on('data', (chunk) => to.write(chunk))
    to.on('data', (chunk) => from.write(chunk))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    freeze: () => {
      for (const socket of sockets) socket.pause()
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
