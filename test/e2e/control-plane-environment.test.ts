// A control plane whose environment says otherwise: names, places, lifetimes, limits and rights that are not the usual ones.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { status } from '@grpc/grpc-js'
import { type KubeObject, resources } from '../../src/api/index.ts'
import { createCaClient } from '../../src/ca/client/index.ts'
import { ensureServiceAccount, namespaceNamed, tokenOf, workloadGroupOf } from '../support/cluster-objects.ts'
import { type DeltaRequest, nodeOf, openDeltaStream, outcomeOf } from '../support/delta-stream.ts'
import { type RunningDiscovery, startDiscovery } from '../support/discovery.ts'
import { startTestApi, type TestApi } from '../support/embedded-api.ts'
import { ownAddress } from '../support/own-address.ts'
import { address } from '../support/xds-observer.ts'

type WithData = KubeObject & { readonly data?: Readonly<Record<string, string>> }

const hourMs = 3_600_000

describe('a control plane whose environment says otherwise', { timeout: 60_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-environment-'))
  let api: TestApi
  let discovery: RunningDiscovery
  let roots: string
  /** Of `app/web`, for the audience that counts here. */
  let token: string

  before(async () => {
    api = await startTestApi()
    for (const name of ['mesh', 'app']) await api.client.create(resources.namespaces, namespaceNamed(name))
    await ensureServiceAccount(api.client, 'app', 'web')
    await api.client.create(resources.workloadGroups, workloadGroupOf('app', 'wg', 'web'))
    discovery = await startDiscovery({
      kubeconfig: api.server.kubeconfig,
      stateDir: dir,
      flags: { monitoringAddr: '0.0.0.0:0', networksConfig: join(dir, 'none') },
      env: {
        POD_NAMESPACE: 'mesh',
        TOKEN_AUDIENCES: 'ours',
        PILOT_ENABLE_XDS_IDENTITY_CHECK: 'false',
        ENABLE_XDS_API_GENERATOR_AUTH: 'false',
        ENABLE_DEBUG_ENDPOINT_AUTH: 'false',
        UNSAFE_ENABLE_ADMIN_ENDPOINTS: 'true',
        ISTIO_GPRC_MAXRECVMSGSIZE: '4096',
        ISTIO_GPRC_MAXSTREAMS: '7',
        ISTIOD_CUSTOM_HOST: 'mesh.example',
        USE_CACERTS_FOR_SELF_SIGNED_CA: 'true',
        CITADEL_SELF_SIGNED_CA_CERT_TTL: '48h',
        DEFAULT_WORKLOAD_CERT_TTL: '1h',
        PILOT_CA_CERT_CONFIGMAP: 'roots',
        PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION: 'false',
        PILOT_IP_AUTOALLOCATE_IPV4_PREFIX: '10.9.0.0/16',
        PILOT_IP_AUTOALLOCATE_IPV6_PREFIX: 'fd09::/64',
      },
    })
    roots = await api.until<WithData, string>(
      resources.configMaps,
      { namespace: 'app', name: 'roots' },
      (object) => object?.data?.['root-cert.pem'],
    )
    token = await tokenOf(api.client, { namespace: 'app', name: 'web' }, { audience: 'ours' })
  })
  after(async () => {
    await discovery?.stop()
    await api?.[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true })
  })

  /** A client knows the server by its Service in `istio-system`, unless it is told another name. */
  const optionsWith = (bearer: string) => ({
    roots,
    serverName: 'mesh.example',
    headers: { authorization: `Bearer ${bearer}` },
  })
  const outcome = (request: DeltaRequest, bearer = token) =>
    outcomeOf(discovery.ports.grpc, optionsWith(bearer), request)
  const elsewhere = { typeUrl: address, node: nodeOf('sidecar', 'web', 'other') }

  test('keeps a root of the given life in the Secret and the ConfigMaps that are named', async () => {
    const secret = await api.client.get<WithData>(resources.secrets, { namespace: 'mesh', name: 'cacerts' })
    const held = secret?.data?.['root-cert.pem'] ?? secret?.data?.['ca-cert.pem'] ?? ''
    assert.equal(Buffer.from(held, 'base64').toString().trim(), roots.trim())
    const { validFromDate, validToDate } = new X509Certificate(roots)
    assert.equal(validToDate.getTime() - validFromDate.getTime(), 48 * hourMs)
    const absent = [
      api.client.get(resources.secrets, { namespace: 'mesh', name: 'istio-ca-secret' }),
      api.client.get(resources.configMaps, { namespace: 'app', name: 'istio-ca-root-cert' }),
    ]
    assert.deepEqual(await Promise.all(absent), [undefined, undefined])
  })

  test('is called by a further name, and says how many streams a connection may have', async () => {
    const session = connectHttp2(`https://127.0.0.1:${discovery.ports.grpc}`, { ca: roots, servername: 'mesh.example' })
    const [settings] = (await once(session, 'remoteSettings')) as [{ readonly maxConcurrentStreams?: number }]
    assert.equal(settings.maxConcurrentStreams, 7)
    assert.match((session.socket as TLSSocket).getPeerCertificate().subjectaltname ?? '', /DNS:mesh\.example\b/)
    session.destroy()
  })

  test('takes tokens of its audience alone, and certifies for as long as it is said', async () => {
    const other = await tokenOf(api.client, { namespace: 'app', name: 'web' })
    assert.equal(await outcome(elsewhere, other), 'UNAUTHENTICATED: authentication failure')
    await using ca = createCaClient({
      address: `127.0.0.1:${discovery.ports.grpc}`,
      roots: { kind: 'pem', pem: roots },
      alternativeHostname: 'mesh.example',
      token: () => token,
      clusterId: 'Kubernetes',
      impersonate: false,
    })
    const { leaf } = await ca.requestCertificate('spiffe://cluster.local/ns/app/sa/web')
    const { validToDate } = new X509Certificate(leaf)
    assert.ok(Math.abs(validToDate.getTime() - Date.now() - hourMs) < 60_000)
  })

  test('serves clients that say to be of another namespace, and configuration to those of any', async () => {
    assert.equal(await outcome(elsewhere), 'served')
    const exported = { typeUrl: 'networking.istio.io/v1/WorkloadGroup', node: nodeOf('sidecar', 'web', 'app') }
    assert.equal(await outcome(exported), 'served')
  })

  test('refuses requests that are larger than it is said', async () => {
    const large = { ...elsewhere, resourceNamesSubscribe: ['x'.repeat(5_000)] }
    assert.match(await outcome(large), /^RESOURCE_EXHAUSTED/)
  })

  test('registers no workloads', async () => {
    const machine = { typeUrl: address, node: nodeOf('sidecar', 'vm', 'app', { AUTO_REGISTER_GROUP: 'wg' }) }
    assert.equal(await outcome(machine), 'served')
    const { items } = await api.client.list(resources.workloadEntries, { namespace: 'app' })
    assert.deepEqual(items, [])
  })

  test('shows debug pages to anybody, who may end streams, too', async () => {
    const page = { typeUrl: 'istio.io/debug', node: nodeOf('debug', 'x', 'app'), resourceNamesSubscribe: ['configz'] }
    assert.equal(await outcome(page), 'served')
    const host = ownAddress ?? '127.0.0.1'
    const port = discovery.ports.http[1]?.split(':').at(-1)
    const ask = async (path: string) => (await fetch(`http://${host}:${port}/debug/${path}`)).status
    assert.equal(await ask('syncz'), 200)
    const stream = openDeltaStream(discovery.ports.grpc, optionsWith(token))
    stream.send({ ...elsewhere, node: nodeOf('sidecar', 'victim', 'app') })
    await stream.next()
    assert.equal(await ask('force_disconnect?proxyID=victim.app'), 200)
    const { code, details } = await stream.ended
    assert.deepEqual([code, details], [status.UNAVAILABLE, 'the stream was ended by an operator'])
    stream.close()
  })

  test('gives addresses of the ranges that are named', async () => {
    await api.client.create(resources.serviceEntries, {
      apiVersion: 'networking.istio.io/v1',
      kind: 'ServiceEntry',
      metadata: { namespace: 'app', name: 'external' },
      spec: { hosts: ['a.example'], resolution: 'DNS', ports: [{ number: 80, name: 'http', protocol: 'HTTP' }] },
    } as KubeObject)
    type Allocated = KubeObject<unknown, { readonly addresses?: readonly { readonly value: string }[] }>
    const key = { namespace: 'app', name: 'external' }
    const addresses = await api.until<Allocated, readonly string[]>(resources.serviceEntries, key, (object) =>
      object?.status?.addresses?.map(({ value }) => value),
    )
    assert.deepEqual(addresses, ['10.9.0.1', 'fd09::1'])
  })
})
