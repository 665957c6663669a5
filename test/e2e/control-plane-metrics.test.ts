// The metrics of a control plane: what clients and objects do moves those that are named for it.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { type ServiceError, status } from '@grpc/grpc-js'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { createCertificateRequest } from '../../src/ca/client/index.ts'
import { csds } from '../../src/proto/control-plane/index.ts'
import { ca as caMessages, discovery as messages } from '../../src/proto/index.ts'
import {
  createRunningPod,
  ensureServiceAccount,
  meshRoots,
  namespaceNamed,
  tokenOf,
  workloadGroupOf,
} from '../support/cluster-objects.ts'
import { clientTo, type DeltaStream, metadataOf, nodeOf, openDeltaStream } from '../support/delta-stream.ts'
import { type RunningDiscovery, startDiscovery } from '../support/discovery.ts'
import { startTestApi, type TestApi } from '../support/embedded-api.ts'
import { eventually } from '../support/eventually.ts'
import { makeIssuerKeys, signToken, startTokenIssuer, type TokenIssuer } from '../support/token-issuer.ts'
import { openStream } from '../support/virtual-machine.ts'
import { address, authorization } from '../support/xds-observer.ts'

type Values = Readonly<Record<string, number>>
type Headers = Readonly<Record<string, string>>

const web = 'spiffe://cluster.local/ns/app/sa/web'

describe('the metrics of a control plane', { timeout: 90_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-metrics-'))
  let api: TestApi
  let discovery: RunningDiscovery
  let issuer: TokenIssuer
  let roots: string
  /** Of `app/web`, by the issuer of JWT_RULE. */
  let ofWeb: Headers
  /** Of the node proxy, by the cluster. */
  let ofNode: Headers

  before(async () => {
    const keys = await makeIssuerKeys('one')
    issuer = await startTokenIssuer([keys.jwk])
    const claims = { iss: issuer.address, aud: 'us', sub: 'system:serviceaccount:app:web' }
    ofWeb = { authorization: `Bearer ${await signToken(keys, claims)}` }
    api = await startTestApi()
    const { client } = api
    for (const name of ['istio-system', 'app', 'vms']) await client.create(resources.namespaces, namespaceNamed(name))
    await ensureServiceAccount(client, 'vms', 'vm')
    await client.create(resources.workloadGroups, workloadGroupOf('vms', 'wg', 'vm'))
    const node = { namespace: 'istio-system', name: 'ztunnel' }
    const pod = await createRunningPod(client, node, { ip: '10.0.0.2', account: 'ztunnel' })
    await createRunningPod(client, { namespace: 'app', name: 'web' }, { ip: '10.0.0.3', account: 'web' })
    ofNode = { authorization: `Bearer ${await tokenOf(client, node, { pod })}`, clusterid: 'formerly' }
    discovery = await startDiscovery({
      kubeconfig: api.server.kubeconfig,
      stateDir: dir,
      flags: { networksConfig: join(dir, 'none'), clusterAliases: 'formerly=Kubernetes' },
      env: {
        JWT_RULE: JSON.stringify({ issuer: issuer.address, audiences: ['us'] }),
        TRUSTED_GATEWAY_CIDR: '127.0.0.0/8',
        PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: '2s',
        LATEEN_MAX_UNPROVEN_CONNECTIONS: '2',
      },
    })
    roots = await meshRoots(client)
  })
  after(async () => {
    await discovery?.stop()
    await api?.[Symbol.asyncDispose]()
    await issuer?.[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true })
  })

  /** Every sample; one that is not there is nothing yet. */
  async function read(): Promise<ReadonlyMap<string, number>> {
    const text = await (await fetch(`http://${discovery.ports.http[1]}/metrics`)).text()
    const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    return new Map(
      samples.map((line) => {
        const at = line.lastIndexOf(' ')
        return [line.slice(0, at), Number(line.slice(at + 1))]
      }),
    )
  }

  /** Resolves once exactly this has been added to each. */
  async function moved(before: ReadonlyMap<string, number>, by: Values): Promise<void> {
    let found: Values = {}
    const look = async (): Promise<boolean> => {
      const now = await read()
      found = Object.fromEntries(Object.keys(by).map((name) => [name, (now.get(name) ?? 0) - (before.get(name) ?? 0)]))
      return Object.entries(by).every(([name, value]) => found[name] === value)
    }
    await eventually(look, () => `${JSON.stringify(by)}, but ${JSON.stringify(found)}`)
  }

  async function holds(values: Values): Promise<void> {
    let found: ReadonlyMap<string, number> = new Map()
    await eventually(
      async () => {
        found = await read()
        return Object.entries(values).every(([name, value]) => found.get(name) === value)
      },
      () => `${JSON.stringify(values)}, but ${JSON.stringify(Object.keys(values).map((name) => found.get(name)))}`,
    )
  }

  const connectAs = (headers: Headers): DeltaStream => openDeltaStream(discovery.ports.grpc, { roots, headers })

  test('of xDS follow a client from its first request to its end, and so does its sync state', async () => {
    const start = await read()
    const stream = connectAs(ofWeb)
    const node = nodeOf('sidecar', 'web', 'app', { PROXY_CONFIG: {} })
    stream.send({ typeUrl: address, node })
    const first = await stream.next()
    await moved(start, {
      'pilot_xds{version="test"}': 1,
      'pilot_xds_pushes{type="wds"}': 1,
      'pilot_xds_config_size_bytes_count{type="wds"}': 1,
      'pilot_xds_push_time_count{type="wds"}': 1,
      pilot_xds_send_time_count: 1,
      'lateen_grpc_connections{state="known"}': 1,
      'lateen_grpc_connections{state="unproven"}': 0,
    })
    const { DeltaDiscoveryRequestSchema: request, DeltaDiscoveryResponseSchema: response } = messages
    await holds({
      'pilot_xds_config_size_bytes_sum{type="wds"}': toBinary(response, first).byteLength,
      pilot_xds_recv_max: toBinary(request, create(request, { typeUrl: address, node })).byteLength,
    })

    /** Of the one type that the client watches: its state, and the reason that it has given. */
    const syncState = async (): Promise<readonly (string | undefined)[]> => {
      const tool = connectAs(ofNode)
      tool.send({ typeUrl: 'istio.io/debug/syncz', node: nodeOf('sidecar', 'tool', 'istio-system') })
      const bodies = (await tool.next()).resources.map(({ resource }) => resource?.value ?? new Uint8Array())
      tool.close()
      const [config] = bodies.map((body) => fromBinary(csds.ClientConfigSchema, body))
      assert.equal(config?.node?.id, node.id)
      const [sync, ...more] = config?.genericXdsConfigs ?? []
      assert.deepEqual([sync?.typeUrl, more], [address, []])
      assert.ok(sync?.lastUpdated)
      return [csds.ConfigStatus[sync.configStatus], sync.errorState?.details]
    }
    assert.deepEqual(await syncState(), ['STALE', undefined])
    stream.send({ typeUrl: address, responseNonce: first.nonce })
    await eventually(async () => (await syncState())[0] === 'SYNCED', 'an acknowledgement makes it synced')

    const acknowledged = await read()
    const rejection = { code: status.INVALID_ARGUMENT, message: 'no room' }
    stream.send({ typeUrl: address, responseNonce: first.nonce, errorDetail: rejection })
    await moved(acknowledged, { 'pilot_total_xds_rejects{type="wds"}': 1 })
    assert.deepEqual(await syncState(), ['ERROR', 'no room'])

    stream.send({ typeUrl: address, responseNonce: 'long ago' })
    await moved(acknowledged, { 'pilot_xds_expired_nonce{type="wds"}': 1 })

    await api.client.create(resources.services, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'app', name: 'web' },
      spec: { ports: [{ name: 'http', port: 80 }] },
    } as KubeObject)
    assert.deepEqual(
      (await stream.next()).resources.map(({ name }) => name),
      ['app/web.app.svc.cluster.local'],
    )
    await moved(acknowledged, {
      'pilot_inbound_updates{type="svc"}': 1,
      pilot_services: 1,
      'pilot_push_triggers{type="wds"}': 1,
      'pilot_push_triggers{type="wads"}': 0,
      'pilot_xds_pushes{type="wds"}': 1,
      pilot_debounce_time_count: 1,
      pilot_proxy_queue_time_count: 1,
      pilot_proxy_convergence_time_count: 1,
    })
    await api.client.delete(resources.services, { namespace: 'app', name: 'web' })
    assert.deepEqual((await stream.next()).removedResources, ['app/web.app.svc.cluster.local'])
    await moved(acknowledged, { 'pilot_inbound_updates{type="svcdelete"}': 1, pilot_services: 0 })

    stream.send({ typeUrl: authorization })
    await stream.next()
    await moved(acknowledged, { 'pilot_xds_pushes{type="wads"}': 1 })
    stream.close()
    await moved(start, { 'pilot_xds{version="test"}': 0 })
  })

  /** The chain, or with what status the request was refused. */
  function certify(headers: Headers, csr: string, impersonated = ''): Promise<readonly string[] | string> {
    const client = clientTo(discovery.ports.grpc, { roots })
    return new Promise<readonly string[] | string>((resolve) => {
      client.makeUnaryRequest(
        '/istio.v1.auth.IstioCertificateService/CreateCertificate',
        (request: caMessages.IstioCertificateRequest) =>
          Buffer.from(toBinary(caMessages.IstioCertificateRequestSchema, request)),
        (bytes: Buffer) => fromBinary(caMessages.IstioCertificateResponseSchema, bytes),
        create(caMessages.IstioCertificateRequestSchema, {
          csr,
          ...(impersonated === '' ? {} : { metadata: { ImpersonatedIdentity: impersonated } }),
        }),
        metadataOf(headers),
        (error: ServiceError | null, response) =>
          resolve(error === null ? (response?.certChain ?? []) : (status[error.code] ?? '')),
      )
    }).finally(() => client.close())
  }

  test('of certificates count requests by what became of them', async () => {
    const counters = [
      'csr_count',
      'success_cert_issuance_count',
      'authentication_failure_count',
      'id_extraction_err_count',
      'csr_parsing_err_count',
      'csr_sign_err_count{error="CSR_ERROR"}',
    ] as const
    const movedBy = (before: ReadonlyMap<string, number>, by: Partial<Record<(typeof counters)[number], number>>) =>
      moved(before, Object.fromEntries(counters.map((name) => [`citadel_server_${name}`, by[name] ?? 0])))
    const { csrPem } = await createCertificateRequest(web)

    let start = await read()
    const namesOf = (chain: readonly string[] | string) => new X509Certificate(chain[0] ?? '').subjectAltName
    assert.equal(namesOf(await certify(ofWeb, csrPem)), `URI:${web}`)
    // The node proxy calls its cluster by another name.
    assert.equal(namesOf(await certify(ofNode, csrPem, web)), `URI:${web}`)
    await movedBy(start, { csr_count: 2, success_cert_issuance_count: 2 })

    start = await read()
    assert.equal(await certify({ authorization: 'Bearer forged' }, csrPem), 'UNAUTHENTICATED')
    assert.equal(await certify(ofNode, csrPem, web.replace('web', 'nobody')), 'UNAUTHENTICATED')
    await movedBy(start, { csr_count: 2, authentication_failure_count: 2 })

    start = await read()
    const nameless = { 'x-forwarded-client-cert': 'Hash=00' }
    assert.equal(await certify(nameless, csrPem), 'UNAUTHENTICATED')
    await movedBy(start, { csr_count: 1, authentication_failure_count: 1, id_extraction_err_count: 1 })

    start = await read()
    assert.equal(await certify(ofWeb, 'no request'), 'INVALID_ARGUMENT')
    await movedBy(start, { csr_count: 1, csr_parsing_err_count: 1, 'csr_sign_err_count{error="CSR_ERROR"}': 1 })
  })

  test('of the authority tell when its root and its chain end', async () => {
    const now = await read()
    const end = new X509Certificate(roots).validToDate.getTime() / 1000
    for (const what of ['root_cert', 'cert_chain']) {
      assert.equal(now.get(`citadel_server_${what}_expiry_timestamp`), end, what)
      const left = now.get(`citadel_server_${what}_expiry_seconds`) ?? 0
      assert.ok(Math.abs(left - (end - Date.now() / 1000)) < 60, what)
    }
  })

  test('of registration count workloads that come, stay away, come again and go', async () => {
    const headers = { authorization: `Bearer ${await tokenOf(api.client, { namespace: 'vms', name: 'vm' })}` }
    const token = headers.authorization.slice('Bearer '.length)
    const counts = (success: number, updates: number, unregister: number, deletes: number, errors: number) =>
      holds(
        Object.fromEntries(
          Object.entries({ success, updates, unregister, deletes, errors })
            .filter(([, value]) => value > 0)
            .map(([name, value]) => [`auto_registration_${name}_total`, value]),
        ),
      )
    const stranger = connectAs(headers)
    stranger.send({ typeUrl: address, node: nodeOf('sidecar', 'vm', 'vms', { AUTO_REGISTER_GROUP: 'no-such' }) })
    assert.equal((await stranger.ended).code, status.FAILED_PRECONDITION)
    stranger.close()
    await counts(0, 0, 0, 0, 1)

    const machine = openStream(discovery.ports.grpc, { roots, token })
    await machine.answered
    await counts(1, 0, 0, 0, 1)
    machine.close()
    await counts(1, 0, 1, 0, 1)
    const again = openStream(discovery.ports.grpc, { roots, token })
    await again.answered
    await counts(1, 1, 1, 0, 1)
    again.close()
    await counts(1, 1, 2, 1, 1)
  })

  test('of clusters follow the Secrets that name them', async () => {
    const secret = (kubeconfig: string): KubeObject => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: 'istio-system', name: 'remote', labels: { 'istio/multiCluster': 'true' } },
      ...{ data: { c2: Buffer.from(kubeconfig).toString('base64') } },
    })
    const clusters = (remote: number) => ({
      'istiod_managed_clusters{cluster_type="local"}': 1,
      'istiod_managed_clusters{cluster_type="remote"}': remote,
    })
    const event = (name: string) => `remote_cluster_secret_events_total{event="${name}"}`
    const synced = 'istiod_remote_cluster_sync_status{cluster="c2"}'
    await holds(clusters(0))
    const kubeconfig = readFileSync(api.server.kubeconfig, 'utf8')
    await api.client.create(resources.secrets, secret(kubeconfig))
    await holds({ ...clusters(1), [event('add')]: 1, [synced]: 1 })
    await api.client.replace(resources.secrets, secret(`# rotated\n${kubeconfig}`))
    await holds({ ...clusters(1), [event('add')]: 1, [event('update')]: 1, [synced]: 1 })
    await api.client.delete(resources.secrets, { namespace: 'istio-system', name: 'remote' })
    await holds({ ...clusters(0), [event('delete')]: 1 })
    assert.equal((await read()).get(synced), undefined)
  })

  test('of the process tell its version, its uptime, and the connections that it ends', async () => {
    const start = await read()
    assert.equal(start.get('pilot_info{version="test"}'), 1)
    assert.ok((start.get('istiod_uptime_seconds') ?? 0) > 0)
    // One more than may have proved nothing.
    const silent = Array.from({ length: 3 }, () => connectTcp({ port: discovery.ports.grpc, host: '127.0.0.1' }))
    await Promise.race(silent.map((socket) => once(socket.resume(), 'close')))
    await moved(start, {
      'lateen_grpc_connections_ended_total{reason="crowded"}': 1,
      'lateen_grpc_connections{state="unproven"}': 2,
    })
    for (const socket of silent) socket.destroy()
    await holds({ 'lateen_grpc_connections{state="unproven"}': 0 })
  })

  test('are all on the operator’s page', async () => {
    const text = await (await fetch(`http://${discovery.ports.http[1]}/metrics`)).text()
    const page = readFileSync(join(import.meta.dirname, '../../docs/control-plane.md'), 'utf8')
    const served = text.matchAll(/^# TYPE (\w+)/gm).map(([, name = '']) => name)
    const missing = [...served].filter((name) => !name.startsWith('process_') && !page.includes(`\`${name}\``))
    assert.deepEqual(missing, [])
  })
})
