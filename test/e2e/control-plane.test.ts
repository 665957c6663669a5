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
import type { EmbeddedApi } from '../../src/kube/apiserver/index.ts'
import { createKubeClient, type KubeClient } from '../../src/kube/index.ts'
import { security, workload } from '../../src/proto/index.ts'
import { createRunningPod, meshRoots, namespaceNamed, tokenOf } from '../support/cluster-objects.ts'
import { startDiscovery } from '../support/discovery.ts'
import { startApi } from '../support/embedded-api.ts'
import { observeXds } from '../support/xds-observer.ts'

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
  let api = await startApi(stateDir)
  const port = api.addresses[0]?.port ?? 0
  const client = await createKubeClient({ kubeconfig: api.kubeconfig })
  await client.create(resources.namespaces, namespaceNamed('istio-system'))
  const discovery = await startDiscovery({ kubeconfig: api.kubeconfig, stateDir })
  return {
    api,
    client,
    ...discovery.ports,
    async restartApi() {
      await api[Symbol.asyncDispose]()
      api = await startApi(stateDir, port)
    },
    async stop() {
      await discovery.stop()
      await client.close()
      await api[Symbol.asyncDispose]()
      await rm(stateDir, { recursive: true })
    },
  }
}

const ztunnel = { namespace: 'istio-system', name: 'ztunnel' }

describe('the control plane', { timeout: 60_000 }, () => {
  let plane: ControlPlane
  let roots: string
  let token: string
  let ztunnelPod: KubeObject

  before(async () => {
    plane = await startControlPlane()
    const { client } = plane
    await client.create(resources.namespaces, namespaceNamed('app', { 'istio.io/dataplane-mode': 'ambient' }))
    ztunnelPod = await createRunningPod(
      client,
      { namespace: 'istio-system', name: 'zt' },
      { ip: '10.0.0.2', account: 'ztunnel' },
    )
    await createRunningPod(client, { namespace: 'app', name: 'web' }, { ip: '10.0.0.3', account: 'web' })
    token = await tokenOf(client, ztunnel, { pod: ztunnelPod })
    roots = await meshRoots(client)
  })
  after(() => plane.stop())

  test('streams workloads and policies to a node proxy and follows changes, also after the API server restarted', async () => {
    const { client } = plane
    const proxy = observeXds(plane.grpc, { tls: { roots, token } })
    const web = 'Kubernetes//Pod/app/web'
    await proxy.client.synced
    await proxy.until(() => proxy.held.has(web))
    const message = fromBinary(workload.AddressSchema, proxy.held.get(web)?.body ?? new Uint8Array())
    assert.equal(message.type.case, 'workload')
    assert.equal(message.type.case === 'workload' && message.type.value.serviceAccount, 'web')
    const policy = (name: string, action: string): KubeObject => ({
      apiVersion: 'security.istio.io/v1',
      kind: 'AuthorizationPolicy',
      metadata: { namespace: 'app', name },
      spec: { action, rules: [{ from: [{ source: { namespaces: ['other'] } }] }] },
    })
    await client.create(resources.authorizationPolicies, policy('deny', 'DENY'))
    await proxy.until(() => proxy.held.has('app/deny'))
    const sent = fromBinary(security.AuthorizationSchema, proxy.held.get('app/deny')?.body ?? new Uint8Array())
    assert.equal(sent.action, security.Action.DENY)
    await plane.restartApi()
    await createRunningPod(client, { namespace: 'app', name: 'late' }, { ip: '10.0.0.4', account: 'web' })
    await proxy.until(() => proxy.held.has('Kubernetes//Pod/app/late'))
    await client.delete(resources.pods, { namespace: 'app', name: 'web' }, { gracePeriodSeconds: 0 })
    await proxy.until(() => !proxy.held.has(web))
    await proxy[Symbol.asyncDispose]()
  })

  test('tells tools that ask for its clients when they come and go', async () => {
    const tls = { roots, token }
    // All of them say to be the same node proxy, and only others are looked for.
    const envoyTypes = 'type.googleapis.com/envoy'
    const tools = [
      { typeUrl: 'istio.io/connections', bodyType: `${envoyTypes}.config.core.v3.Node` },
      { typeUrl: 'istio.io/debug/syncz', bodyType: `${envoyTypes}.service.status.v3.ClientConfig` },
    ].map((type) => observeXds(plane.grpc, { tls, types: [type] }))
    for (const tool of tools) await tool.client.synced
    const [connections, states] = tools
    assert.ok(connections && states)
    await connections.until(() => connections.held.size === 2)
    const before = new Set(connections.held.keys())
    states.takeReceived()
    const proxy = observeXds(plane.grpc, { tls })
    await connections.until(() => connections.held.size === 3)
    const [added = ''] = [...connections.held.keys()].filter((id) => !before.has(id))
    assert.match(added, /^zt\.istio-system-\d+$/)
    await states.until(() => states.takeReceived().length > 0)
    await proxy[Symbol.asyncDispose]()
    await connections.until(() => connections.removed.has(added))
    assert.deepEqual(new Set(connections.held.keys()), before)
    for (const tool of tools) await tool[Symbol.asyncDispose]()
  })

  test('puts no root into namespaces that no workload is in', async () => {
    const { client } = plane
    const systems = ['kube-node-lease', 'kube-public', 'kube-system', 'local-path-storage']
    const present = new Set((await client.list(resources.namespaces)).items.map(({ metadata }) => metadata.name))
    for (const name of systems) if (!present.has(name)) await client.create(resources.namespaces, namespaceNamed(name))
    await using configMaps = client.informer(resources.configMaps, {
      fieldSelector: 'metadata.name=istio-ca-root-cert',
    })
    const written = new Promise<void>((resolve) => {
      configMaps.subscribe((changes) => {
        if (changes.some(({ object }) => object.metadata.namespace === 'after-them')) resolve()
      })
    })
    // Namespaces are looked at one after the other.
    await client.create(resources.namespaces, namespaceNamed('after-them'))
    await written
    const having = configMaps.list().map(({ metadata }) => metadata.namespace ?? '')
    assert.deepEqual(
      systems.filter((name) => having.includes(name)),
      ['kube-system'],
    )
  })

  test('puts the root into every namespace, also a new one, and again when it is deleted', async () => {
    const { client } = plane
    await client.create(resources.namespaces, namespaceNamed('later'))
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
    const caller = await createRunningPod(
      client,
      { namespace: 'app', name: 'signed' },
      { ip: '10.0.0.9', account: 'signed' },
    )
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
    const ordinary = await tokenOf(client, { namespace: 'app', name: 'signed' }, { pod: caller })
    await assert.rejects(ask(ordinary, 'spiffe://cluster.local/ns/app/sa/web'), /impersonation authentication failure/)
    assert.match(new X509Certificate((await ask(ordinary, signed, false)).leaf).subjectAltName ?? '', /sa\/signed/)
    await assert.rejects(ask('forged', signed), /authenticate failure/)
  })

  test('refuses a token of another audience', async () => {
    const wrong = await tokenOf(plane.client, ztunnel, { audience: 'something-else', pod: ztunnelPod })
    const proxy = observeXds(plane.grpc, { tls: { roots, token: wrong } })
    assert.match(await proxy.refused, /authentication failure/)
    assert.equal(proxy.held.size, 0)
    await proxy[Symbol.asyncDispose]()
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
    assert.match(metrics, /^endpoint_no_pod 0$/m)
    assert.match(metrics, /^pilot_endpoint_not_ready \d+$/m)
    assert.match(metrics, /pilot_xds_pushes\{type="wds"\} [1-9]/)
    const endpoints = (await (await fetch(`http://${monitoring}/debug/endpointz`)).json()) as { service: string }[]
    assert.ok(endpoints.some(({ service }) => service === 'app/external.example'))
    const proxy = observeXds(plane.grpc, { tls: { roots, token } })
    await proxy.client.synced
    const clients = (await (await fetch(`http://${monitoring}/debug/syncz`)).json()) as { proxy: string }[]
    assert.ok(clients.some((one) => one.proxy === 'zt.istio-system'))
    await proxy[Symbol.asyncDispose]()
  })
})
