// The control plane against the embedded API: from objects to a node proxy's stream and certificates.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { type KubeObject, type Resource, resources } from '../../src/api/index.ts'
import { createCaClient } from '../../src/ca/client/index.ts'
import { readSettings, runDiscovery } from '../../src/istiod/index.ts'
import { type EmbeddedApi, startEmbeddedApi } from '../../src/kube/apiserver/index.ts'
import { createKubeClient, type KubeClient } from '../../src/kube/index.ts'
import { silentLogging } from '../../src/observability/index.ts'
import { security, workload } from '../../src/proto/index.ts'
import { createDeltaClient, type DeltaClient, type DeltaUpdate } from '../../src/xds/client/index.ts'

const address = 'type.googleapis.com/istio.workload.Address'
const authorization = 'type.googleapis.com/istio.security.Authorization'
const nodeName = 'node1'

interface ControlPlane {
  readonly api: EmbeddedApi
  readonly client: KubeClient
  readonly grpc: number
  readonly http: readonly string[]
  restartApi(): Promise<void>
  stop(): Promise<void>
}

async function startControlPlane(): Promise<ControlPlane> {
  const stateDir = await mkdtemp(join(tmpdir(), 'lateen-control-plane-'))
  const startApi = (port: number) =>
    startEmbeddedApi({
      stateDir,
      listen: [{ host: '127.0.0.1', port }],
      serviceCidr: '10.96.0.0/16',
      onError: (error) => assert.fail(String(error)),
    })
  let api = await startApi(0)
  const port = api.addresses[0]?.port ?? 0
  const client = await createKubeClient({ kubeconfig: api.kubeconfig })
  await client.create(resources.namespaces, namespaceOf('istio-system'))
  const stop = new AbortController()
  const started = Promise.withResolvers<{ grpc: number; http: readonly string[] }>()
  const flags = {
    kubeconfig: api.kubeconfig,
    httpAddr: '127.0.0.1:0',
    secureGRPCAddr: '127.0.0.1:0',
    monitoringAddr: '127.0.0.1:0',
    meshConfig: join(stateDir, 'no-mesh-config'),
    ctrlz_port: '0',
  }
  const env = { ROOT_CA_DIR: join(stateDir, 'no-cacerts'), POD_NAME: 'istiod-1' }
  const settings = readSettings(flags, env, 2)
  const running = runDiscovery(
    { settings, version: 'test', jwtRule: '', logging: silentLogging(), started: started.resolve },
    stop.signal,
  )
  running.catch(started.reject)
  const ports = await started.promise
  return {
    api,
    client,
    ...ports,
    async restartApi() {
      await api[Symbol.asyncDispose]()
      api = await startApi(port)
    },
    async stop() {
      stop.abort()
      await running
      await client.close()
      await api[Symbol.asyncDispose]()
      await rm(stateDir, { recursive: true })
    },
  }
}

const namespaceOf = (name: string, labels: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
})

async function createPod(
  client: KubeClient,
  namespace: string,
  name: string,
  options: { ip: string; account: string },
) {
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name: options.account } }
  await client.create(resources.serviceAccounts, account).catch(() => {})
  const pod: KubeObject = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name },
    spec: {
      nodeName,
      serviceAccountName: options.account,
      containers: [{ name: 'app', image: 'host', command: ['sleep', '60'] }],
    },
  }
  const created = await client.create(resources.pods, pod)
  const status = {
    phase: 'Running',
    podIP: options.ip,
    podIPs: [{ ip: options.ip }],
    conditions: [{ type: 'Ready', status: 'True' }],
  }
  await client.patch(
    resources.pods,
    { namespace, name },
    { kind: 'merge', body: { status } },
    { subresource: 'status' },
  )
  return created
}

async function tokenFor(client: KubeClient, pod: KubeObject, account: string, audience: string): Promise<string> {
  const { namespace, name, uid } = pod.metadata
  const request = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { audiences: [audience], boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid } },
  }
  const answer = await client.createSubresource<{ status: { token: string } }>(
    resources.serviceAccounts,
    { namespace: namespace ?? '', name: account },
    'token',
    request,
  )
  return answer.status.token
}

async function rootsOf(client: KubeClient): Promise<string> {
  const key = { namespace: 'istio-system', name: 'istio-ca-secret' }
  const secret = await client.get<KubeObject & { data: Record<string, string> }>(resources.secrets, key)
  return Buffer.from(secret?.data['root-cert.pem'] ?? '', 'base64').toString()
}

function connectProxy(port: number, roots: string, token: string) {
  const held = new Map<string, Uint8Array>()
  const looks = new Set<() => void>()
  const refused = Promise.withResolvers<string>()
  const silent = silentLogging().scope('test')
  const client: DeltaClient = createDeltaClient({
    address: `127.0.0.1:${port}`,
    transport: { kind: 'tls', roots: () => roots, serverName: 'istiod.istio-system.svc' },
    headers: () => ({ authorization: `Bearer ${token}`, clusterid: 'Kubernetes' }),
    node: {
      id: 'ztunnel~127.0.0.1~zt.istio-system~istio-system.svc.cluster.local',
      metadata: { NODE_NAME: nodeName, NAMESPACE: 'istio-system' },
    },
    types: [{ typeUrl: address }, { typeUrl: authorization }],
    log: { ...silent, log: (_level, _message, fields) => refused.resolve(String(fields?.reason)) },
    onUpdate({ typeUrl, resources: changed, removed }: DeltaUpdate) {
      for (const { name, body } of changed) held.set(`${typeUrl} ${name}`, body)
      for (const name of removed) held.delete(`${typeUrl} ${name}`)
      for (const look of looks) look()
      return { rejected: [] }
    },
  })
  return {
    client,
    held,
    refused: refused.promise,
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

describe('the control plane', { timeout: 60_000 }, () => {
  let plane: ControlPlane
  let roots: string
  let token: string
  let ztunnelPod: KubeObject

  before(async () => {
    plane = await startControlPlane()
    const { client } = plane
    await client.create(resources.namespaces, namespaceOf('app', { 'istio.io/dataplane-mode': 'ambient' }))
    ztunnelPod = await createPod(client, 'istio-system', 'zt', { ip: '10.0.0.2', account: 'ztunnel' })
    await createPod(client, 'app', 'web', { ip: '10.0.0.3', account: 'web' })
    token = await tokenFor(client, ztunnelPod, 'ztunnel', 'istio-ca')
    roots = await rootsOf(client)
  })
  after(() => plane.stop())

  test('streams workloads and policies to a node proxy and follows changes, also after the API server restarted', async () => {
    const { client } = plane
    const proxy = connectProxy(plane.grpc, roots, token)
    const web = `${address} Kubernetes//Pod/app/web`
    await proxy.client.synced
    await proxy.until(() => proxy.held.has(web))
    const message = fromBinary(workload.AddressSchema, proxy.held.get(web) ?? new Uint8Array())
    assert.equal(message.type.case, 'workload')
    assert.equal(message.type.case === 'workload' && message.type.value.serviceAccount, 'web')
    const policy = (name: string, action: string): KubeObject => ({
      apiVersion: 'security.istio.io/v1',
      kind: 'AuthorizationPolicy',
      metadata: { namespace: 'app', name },
      spec: { action, rules: [{ from: [{ source: { namespaces: ['other'] } }] }] },
    })
    await client.create(resources.authorizationPolicies, policy('deny', 'DENY'))
    await proxy.until(() => proxy.held.has(`${authorization} app/deny`))
    const sent = fromBinary(
      security.AuthorizationSchema,
      proxy.held.get(`${authorization} app/deny`) ?? new Uint8Array(),
    )
    assert.equal(sent.action, security.Action.DENY)
    await plane.restartApi()
    await createPod(client, 'app', 'late', { ip: '10.0.0.4', account: 'web' })
    await proxy.until(() => proxy.held.has(`${address} Kubernetes//Pod/app/late`))
    await client.delete(resources.pods, { namespace: 'app', name: 'web' }, { gracePeriodSeconds: 0 })
    await proxy.until(() => !proxy.held.has(web))
    await proxy.client[Symbol.asyncDispose]()
  })

  test('puts the root into every namespace, also a new one, and again when it is deleted', async () => {
    const { client } = plane
    await client.create(resources.namespaces, namespaceOf('later'))
    const key = { namespace: 'later', name: 'istio-ca-root-cert' }
    await using configMaps = client.informer<KubeObject & { data: Record<string, string> }>(resources.configMaps, {
      namespace: 'later',
    })
    const appears = () =>
      new Promise<void>((resolve) => {
        const end = configMaps.subscribe((changes) => {
          if (!changes.some((change) => change.kind === 'added')) return
          queueMicrotask(() => end())
          resolve()
        })
      })
    await appears()
    assert.equal(configMaps.get(key)?.data['root-cert.pem'], roots)
    const again = new Promise<void>((resolve) => {
      configMaps.subscribe((changes) => {
        if (changes.some(({ kind }) => kind === 'deleted')) resolve()
      })
    })
    await client.delete(resources.configMaps, key)
    await again
    await appears()
    assert.equal(configMaps.get(key)?.data['root-cert.pem'], roots)
  })

  test('signs for pods of the caller’s node and for nobody else', async () => {
    const { client } = plane
    const caller = await createPod(client, 'app', 'signed', { ip: '10.0.0.9', account: 'signed' })
    const ask = async (bearer: string, identity: string, impersonate = true) => {
      await using ca = createCaClient({
        address: `127.0.0.1:${plane.grpc}`,
        roots: { kind: 'pem', pem: roots },
        alternativeHostname: 'istiod.istio-system.svc',
        token: () => bearer,
        clusterId: 'Kubernetes',
        impersonate,
      })
      return await ca.requestCertificate(identity)
    }
    const signed = 'spiffe://cluster.local/ns/app/sa/signed'
    const certificate = await ask(token, signed)
    assert.match(
      new X509Certificate(certificate.leaf).subjectAltName ?? '',
      /URI:spiffe:\/\/cluster\.local\/ns\/app\/sa\/signed/,
    )
    assert.equal(certificate.roots.join('').trim(), roots.trim())
    await assert.rejects(ask(token, 'spiffe://cluster.local/ns/app/sa/nobody'), /impersonation authentication failure/)
    await assert.rejects(ask(token, 'spiffe://elsewhere/ns/app/sa/signed'), /impersonation authentication failure/)
    const ordinary = await tokenFor(client, caller, 'signed', 'istio-ca')
    await assert.rejects(ask(ordinary, 'spiffe://cluster.local/ns/app/sa/web'), /impersonation authentication failure/)
    assert.match(new X509Certificate((await ask(ordinary, signed, false)).leaf).subjectAltName ?? '', /sa\/signed/)
    await assert.rejects(ask('forged', signed), /authenticate failure/)
  })

  test('refuses a token of another audience', async () => {
    const wrong = await tokenFor(plane.client, ztunnelPod, 'ztunnel', 'something-else')
    const proxy = connectProxy(plane.grpc, roots, wrong)
    assert.match(await proxy.refused, /authentication failure/)
    assert.equal(proxy.held.size, 0)
    await proxy.client[Symbol.asyncDispose]()
  })

  test('writes automatic addresses and conditions into the status of objects', async () => {
    const { client } = plane
    type WithStatus = KubeObject<
      unknown,
      { addresses?: { host: string; value: string }[]; conditions?: { type: string; status: string }[] }
    >
    const entry: WithStatus = {
      apiVersion: 'networking.istio.io/v1',
      kind: 'ServiceEntry',
      metadata: { namespace: 'app', name: 'external' },
      spec: { hosts: ['external.example'], resolution: 'DNS', ports: [{ number: 443, name: 'tls', protocol: 'TLS' }] },
    }
    const policy: WithStatus = {
      apiVersion: 'security.istio.io/v1',
      kind: 'AuthorizationPolicy',
      metadata: { namespace: 'app', name: 'l4' },
      spec: { action: 'DENY', rules: [{ to: [{ operation: { ports: ['9999'] } }] }] },
    }
    const eventually = async (resource: Resource, name: string, holds: (object: WithStatus) => boolean) => {
      await using informer = client.informer<WithStatus>(resource, { namespace: 'app' })
      await new Promise<void>((resolve) => {
        informer.subscribe((changes) => {
          if (changes.some(({ object }) => object.metadata.name === name && holds(object))) resolve()
        })
      })
    }
    await client.create(resources.serviceEntries, entry)
    await eventually(resources.serviceEntries, 'external', ({ status }) =>
      (status?.addresses ?? []).some(({ host, value }) => host === 'external.example' && value.startsWith('240.240.')),
    )
    await client.create(resources.authorizationPolicies, policy)
    await eventually(resources.authorizationPolicies, 'l4', ({ status }) =>
      (status?.conditions ?? []).some((one) => one.type === 'ZtunnelAccepted' && one.status === 'True'),
    )
  })

  test('tells readiness, metrics and the state of its clients', async () => {
    const [http = '', monitoring = ''] = plane.http
    assert.equal((await fetch(`http://${http}/ready`)).status, 200)
    const metrics = await (await fetch(`http://${monitoring}/metrics`)).text()
    assert.match(metrics, /pilot_proxy_convergence_time_count [1-9]/)
    assert.match(metrics, /pilot_debounce_time_count [1-9]/)
    assert.match(metrics, /pilot_inbound_updates\{type="svc"\} [1-9]/)
    assert.match(metrics, /pilot_xds_pushes\{type="wds"\} [1-9]/)
    const proxy = connectProxy(plane.grpc, roots, token)
    await proxy.client.synced
    const clients = (await (await fetch(`http://${monitoring}/debug/syncz`)).json()) as { proxy: string }[]
    assert.ok(clients.some((one) => one.proxy === 'zt.istio-system'))
    await proxy.client[Symbol.asyncDispose]()
  })
})
