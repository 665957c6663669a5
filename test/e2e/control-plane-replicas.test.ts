// Two replicas of the control plane as processes against one API server: they serve the same, one of them writes, and the loss of
// one under traffic costs its clients only what changed meanwhile.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { createKubeClient, type KubeClient } from '../../src/kube/index.ts'
import { silentLogging } from '../../src/observability/index.ts'
import { createDeltaClient, type DeltaUpdate } from '../../src/xds/client/index.ts'
import { type ApiProcess, startApiProcess } from './apiserver-process.ts'

const address = 'type.googleapis.com/istio.workload.Address'
const authorization = 'type.googleapis.com/istio.security.Authorization'
const program = join(import.meta.dirname, '../../src/commands/main.ts')
const log = silentLogging().scope('test')

interface Replica {
  readonly name: string
  readonly port: number
  kill(): Promise<void>
}

async function startReplica(kubeconfig: string, name: string): Promise<Replica> {
  const [port, http] = [await freePort(), await freePort()]
  const flags = ['--kubeconfig', kubeconfig, '--secureGRPCAddr', `127.0.0.1:${port}`, '--httpAddr', `127.0.0.1:${http}`]
  const child: ChildProcess = spawn(
    process.execPath,
    [
      program,
      'discovery',
      ...flags,
      '--monitoringAddr',
      '127.0.0.1:0',
      '--ctrlz_port',
      '0',
      '--meshConfig',
      `${kubeconfig}.none`,
    ],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, POD_NAME: name, ROOT_CA_DIR: `${kubeconfig}.none` },
    },
  )
  let said = ''
  const ready = Promise.withResolvers<void>()
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    said += text
    if (/\tready\t/.test(said)) ready.resolve()
  })
  child.once('exit', (code) => ready.reject(new Error(`${name} ended with ${code}:\n${said}`)))
  await ready.promise
  return {
    name,
    port,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** What a Service is to its clients: one address before all replicas; connections to a dead one go to the next. */
async function balance(replicas: readonly Replica[]) {
  const sockets = new Set<Socket>()
  const server = createServer((from) => {
    const attempt = (at: number): void => {
      const replica = replicas[at]
      if (replica === undefined) {
        from.destroy()
        return
      }
      const to = connect(replica.port, '127.0.0.1')
      to.once('error', () => {
        to.destroy()
        if (to.bytesRead === 0 && to.readyState !== 'open' && !from.destroyed) attempt(at + 1)
      })
      to.once('connect', () => {
        from.pipe(to).pipe(from)
        to.once('close', () => from.destroy())
        from.once('close', () => to.destroy())
      })
      sockets.add(to)
    }
    from.on('error', () => from.destroy())
    sockets.add(from)
    attempt(0)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const at = server.address()
  return {
    port: typeof at === 'object' && at !== null ? at.port : 0,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

interface Held {
  readonly version: string
  readonly body: string
}

function nodeProxy(port: number, roots: string, token: string) {
  const held = new Map<string, Held>()
  const looks = new Set<() => void>()
  let received: string[] = []
  const client = createDeltaClient({
    address: `127.0.0.1:${port}`,
    transport: { kind: 'tls', roots: () => roots, serverName: 'istiod.istio-system.svc' },
    headers: () => ({ authorization: `Bearer ${token}`, clusterid: 'Kubernetes' }),
    node: { id: 'ztunnel~127.0.0.1~zt.istio-system~istio-system.svc.cluster.local', metadata: { NODE_NAME: 'node1' } },
    types: [{ typeUrl: authorization }, { typeUrl: address }],
    log,
    times: { leastRetryMs: 10, mostRetryMs: 200, connectTimeoutMs: 2_000 },
    onUpdate({ resources: changed, removed }: DeltaUpdate) {
      for (const { name, version, body } of changed) {
        held.set(name, { version, body: Buffer.from(body).toString('base64') })
        received.push(name)
      }
      for (const name of removed) held.delete(name)
      for (const look of [...looks]) look()
      return { rejected: [] }
    },
  })
  return {
    client,
    held,
    /** Names received since the last call. */
    takeReceived(): string[] {
      const taken = received
      received = []
      return taken
    },
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

const resourceOf = (name: string): string => `Kubernetes//Pod/app/${name}`
const sorted = (held: ReadonlyMap<string, Held>) => [...held].sort(([a], [b]) => (a < b ? -1 : 1))

describe('two replicas of the control plane', { timeout: 120_000 }, () => {
  let api: ApiProcess
  let kube: KubeClient
  let replicas: Replica[]
  let roots: string
  let token: string

  async function createPod(name: string, last: number): Promise<KubeObject> {
    const namespace = name === 'zt' ? 'istio-system' : 'app'
    const serviceAccountName = name === 'zt' ? 'ztunnel' : 'default'
    const pod = await kube.create(resources.pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace, name },
      spec: { nodeName: 'node1', serviceAccountName, containers: [{ name: 'app', image: 'host', command: ['true'] }] },
    } as KubeObject)
    const ip = `10.1.${last >> 8}.${last & 255}`
    const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions: [{ type: 'Ready', status: 'True' }] }
    await kube.patch(
      resources.pods,
      { namespace, name },
      { kind: 'merge', body: { status } },
      { subresource: 'status' },
    )
    return pod
  }

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
    for (const name of ['istio-system', 'app']) {
      await kube.create(resources.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
    }
    for (const [namespace, name] of [
      ['istio-system', 'ztunnel'],
      ['app', 'default'],
    ] as const) {
      await kube
        .create(resources.serviceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name } })
        .catch(() => {})
    }
    const { metadata } = await createPod('zt', 1)
    for (let at = 0; at < 40; at += 1) await createPod(`p${at}`, 10 + at)
    // Together, so that they race for the root and for the lease.
    replicas = await Promise.all(['istiod-a', 'istiod-b'].map((name) => startReplica(api.kubeconfig, name)))
    const answer = await kube.createSubresource<{ status: { token: string } }>(
      resources.serviceAccounts,
      { namespace: 'istio-system', name: 'ztunnel' },
      'token',
      {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: {
          audiences: ['istio-ca'],
          boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'zt', uid: metadata.uid },
        },
      },
    )
    token = answer.status.token
    const secret = await kube.get<KubeObject & { data: Record<string, string> }>(resources.secrets, {
      namespace: 'istio-system',
      name: 'istio-ca-secret',
    })
    roots = Buffer.from(secret?.data['root-cert.pem'] ?? '', 'base64').toString()
  })

  after(async () => {
    for (const replica of replicas ?? []) await replica.kill()
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
    for (const proxy of proxies) await proxy.client[Symbol.asyncDispose]()
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
    await fresh.client[Symbol.asyncDispose]()
    await proxy.client[Symbol.asyncDispose]()
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
    await kube.create(resources.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'later' } })
    assert.equal(await written, roots)
    assert.equal(await leader(), second.name)
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const at = server.address()
  server.close()
  await once(server, 'close')
  return typeof at === 'object' && at !== null ? at.port : 0
}
