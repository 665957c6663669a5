// A control plane with much of it switched the other way: who is let in by which port, and what is not done.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Condition, type KubeObject, resources } from '../../src/api/index.ts'
import { createCaClient } from '../../src/ca/client/index.ts'
import {
  ensureServiceAccount,
  meshRoots,
  namespaceNamed,
  tokenOf,
  workloadGroupOf,
} from '../support/cluster-objects.ts'
import { type DeltaRequest, nodeOf, outcomeOf } from '../support/delta-stream.ts'
import { type RunningDiscovery, startDiscovery } from '../support/discovery.ts'
import { startTestApi, type TestApi } from '../support/embedded-api.ts'
import { ownAddress } from '../support/own-address.ts'
import { makeIssuerKeys, signToken, startTokenIssuer, type TokenIssuer } from '../support/token-issuer.ts'
import { address } from '../support/xds-observer.ts'

type WithStatus = KubeObject<
  unknown,
  { readonly addresses?: readonly unknown[]; readonly conditions?: readonly Condition[] }
>

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

describe('a control plane with switches turned', { timeout: 60_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-switches-'))
  let api: TestApi
  let discovery: RunningDiscovery
  let issuer: TokenIssuer
  let roots: string
  /** Of the issuer of JWT_RULE: of `istio-system/tool`, and of `app/web`. */
  let ofTool: string
  let ofWeb: string

  before(async () => {
    const keys = await makeIssuerKeys('one')
    issuer = await startTokenIssuer([keys.jwk])
    const claimsOf = (account: string) => ({ iss: issuer.address, aud: 'us', sub: `system:serviceaccount:${account}` })
    ofTool = await signToken(keys, claimsOf('istio-system:tool'))
    ofWeb = await signToken(keys, claimsOf('app:web'))
    api = await startTestApi()
    for (const name of ['istio-system', 'app']) await api.client.create(resources.namespaces, namespaceNamed(name))
    await ensureServiceAccount(api.client, 'app', 'kube')
    await api.client.create(resources.workloadGroups, workloadGroupOf('app', 'wg', 'vm'))
    discovery = await startDiscovery({
      kubeconfig: api.server.kubeconfig,
      stateDir: dir,
      flags: { grpcAddr: '127.0.0.1:0', monitoringAddr: '0.0.0.0:0', networksConfig: join(dir, 'none') },
      env: {
        XDS_AUTH: 'false',
        XDS_AUTH_PLAINTEXT: 'true',
        JWT_RULE: JSON.stringify({ issuer: issuer.address, audiences: ['us'] }),
        TRUSTED_GATEWAY_CIDR: '127.0.0.0/8',
        ENABLE_CA_SERVER: 'false',
        PILOT_ENABLE_AMBIENT: 'false',
        ENABLE_DEBUG_ON_HTTP: 'false',
        AMBIENT_ENABLE_STATUS: 'false',
      },
    })
    roots = await meshRoots(api.client)
  })
  after(async () => {
    await discovery?.stop()
    await api?.[Symbol.asyncDispose]()
    await issuer?.[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true })
  })

  const sidecar = { typeUrl: address, node: nodeOf('sidecar', 'web', 'app') }
  const overTls = (request: DeltaRequest) => outcomeOf(discovery.ports.grpc, { roots }, request)
  const inPlain = (headers: Readonly<Record<string, string>>, request: DeltaRequest = sidecar) =>
    outcomeOf(discovery.ports.plainGrpc ?? 0, { headers }, request)

  test('XDS_AUTH=false: over TLS anybody is served what proxies are, and nothing that needs an identity', async () => {
    assert.equal(await overTls(sidecar), 'served')
    const page = { ...sidecar, typeUrl: 'istio.io/debug', resourceNamesSubscribe: ['syncz'] }
    assert.equal(await overTls(page), 'UNAUTHENTICATED: authentication required')
    const exported = { typeUrl: 'networking.istio.io/v1/ServiceEntry', node: nodeOf('sidecar', 'web', 'istio-system') }
    assert.match(await overTls(exported), /^UNAUTHENTICATED/)
    const machine = { typeUrl: address, node: nodeOf('sidecar', 'vm', 'app', { AUTO_REGISTER_GROUP: 'wg' }) }
    assert.match(await overTls(machine), /^PERMISSION_DENIED/)
  })

  test('PILOT_ENABLE_AMBIENT=false: node proxies are turned away', async () => {
    const ztunnel = { typeUrl: address, node: nodeOf('ztunnel', 'zt', 'istio-system') }
    assert.equal(await overTls(ztunnel), 'FAILED_PRECONDITION: ztunnel requires PILOT_ENABLE_AMBIENT=true')
  })

  test('XDS_AUTH_PLAINTEXT=true: without TLS, callers prove who they are by a token, or a gateway says it', async () => {
    const refused = 'UNAUTHENTICATED: authentication failure'
    assert.equal(await inPlain({}), refused)
    assert.equal(await inPlain(bearer('forged')), refused)
    assert.equal(await inPlain(bearer(await tokenOf(api.client, { namespace: 'app', name: 'kube' }))), 'served')
    assert.equal(await inPlain(bearer(ofWeb)), 'served')
    const vouched = (namespace: string) => ({
      'x-forwarded-client-cert': `URI=spiffe://cluster.local/ns/${namespace}/sa/web`,
    })
    assert.equal(await inPlain(vouched('app')), 'served')
    for (const headers of [bearer(ofTool), vouched('other')]) {
      assert.match(await inPlain(headers), /^PERMISSION_DENIED/)
    }
  })

  test('ENABLE_CA_SERVER=false: there is no certificate service', async () => {
    await using ca = createCaClient({
      address: `127.0.0.1:${discovery.ports.grpc}`,
      roots: { kind: 'pem', pem: roots },
      alternativeHostname: 'istiod.istio-system.svc',
      token: () => ofWeb,
      clusterId: 'Kubernetes',
      impersonate: false,
    })
    await assert.rejects(ca.requestCertificate('spiffe://cluster.local/ns/app/sa/web'), /\(Unimplemented\)/)
  })

  const statusOf = async (url: string, headers = {}): Promise<number> => {
    const response = await fetch(url, { headers })
    await response.text()
    return response.status
  }

  test('ENABLE_DEBUG_ON_HTTP=false: debug pages are on the port of the metrics alone', async () => {
    const [http = '', monitoring = ''] = discovery.ports.http
    const port = monitoring.split(':').at(-1)
    assert.equal(await statusOf(`http://${http}/ready`), 200)
    assert.equal(await statusOf(`http://${http}/debug/syncz`), 404)
    assert.equal(await statusOf(`http://127.0.0.1:${port}/debug/syncz`), 200)
  })

  const fromElsewhere = { skip: ownAddress === undefined && 'this machine has no network' }
  test('JWT_RULE: the tokens of the issuer count for debug pages, too, from elsewhere', fromElsewhere, async () => {
    const port = discovery.ports.http[1]?.split(':').at(-1)
    const page = `http://${ownAddress}:${port}/debug/syncz`
    assert.equal(await statusOf(page), 401)
    assert.equal(await statusOf(page, bearer(ofWeb)), 403)
    assert.equal(await statusOf(page, bearer(ofTool)), 200)
  })

  test('AMBIENT_ENABLE_STATUS=false: objects are told their addresses, and not how they are served', async () => {
    const { client } = api
    await client.create(resources.authorizationPolicies, {
      apiVersion: 'security.istio.io/v1',
      kind: 'AuthorizationPolicy',
      metadata: { namespace: 'app', name: 'l4' },
      spec: { action: 'DENY', rules: [{ to: [{ operation: { ports: ['9999'] } }] }] },
    } as KubeObject)
    const labels = { 'istio.io/use-waypoint': 'none-such' }
    for (const name of ['first', 'second']) {
      await client.create(resources.serviceEntries, {
        apiVersion: 'networking.istio.io/v1',
        kind: 'ServiceEntry',
        metadata: { namespace: 'app', name, labels },
        spec: {
          hosts: [`${name}.example`],
          resolution: 'DNS',
          ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
        },
      } as KubeObject)
      await api.until<WithStatus, true>(resources.serviceEntries, { namespace: 'app', name }, (object) =>
        (object?.status?.addresses ?? []).length > 0 ? true : undefined,
      )
    }
    const conditionsOf = async (resource: typeof resources.serviceEntries, name: string) =>
      (await client.get<WithStatus>(resource, { namespace: 'app', name }))?.status?.conditions ?? []
    assert.deepEqual(await conditionsOf(resources.serviceEntries, 'first'), [])
    assert.deepEqual(await conditionsOf(resources.authorizationPolicies, 'l4'), [])
  })
})
