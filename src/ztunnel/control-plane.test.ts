// The node proxy's streams and certificates while the API server and the control plane restart, and its token is replaced.
import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createRunningPod, meshRoots, namespaceNamed, tokenOf } from '../../test/support/cluster-objects.ts'
import { startDiscovery } from '../../test/support/discovery.ts'
import { startApi } from '../../test/support/embedded-api.ts'
import { freePort } from '../../test/support/free-port.ts'
import { type KubeObject, resources } from '../api/index.ts'
import { createKubeClient, type KubeClient } from '../kube/index.ts'
import { createMetricsRegistry, silentLogging } from '../observability/index.ts'
import { loadConfig, processInputs } from './config/index.ts'
import { connectCa, connectXds } from './control-plane.ts'
import { createMeshState } from './state/index.ts'
import { createZtunnelMetrics } from './telemetry/index.ts'

const account = { namespace: 'istio-system', name: 'ztunnel' }
const identity = 'spiffe://cluster.local/ns/app/sa/web'

test('a token that is replaced is the one that counts from then on, for certificates and for the next stream', {
  timeout: 60_000,
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-ztunnel-token-'))
  t.after(() => rmSync(dir, { recursive: true }))
  let api = await startApi(join(dir, 'api'))
  let client: KubeClient = await createKubeClient({ kubeconfig: api.kubeconfig })
  const apiPort = api.addresses[0]?.port ?? 0
  for (const name of ['istio-system', 'app']) await client.create(resources.namespaces, namespaceNamed(name))
  const proxyPod = (name: string, ip: string): Promise<KubeObject> =>
    createRunningPod(client, { ...account, name }, { ip, account: account.name })
  const [first, second] = [await proxyPod('zt-1', '10.0.0.1'), await proxyPod('zt-2', '10.0.0.2')]
  await createRunningPod(client, { namespace: 'app', name: 'web' }, { ip: '10.0.0.3', account: 'web' })
  const port = await freePort()
  const plane = () =>
    startDiscovery({ kubeconfig: api.kubeconfig, stateDir: dir, flags: { secureGRPCAddr: `127.0.0.1:${port}` } })
  let discovery = await plane()

  const tokenFile = join(dir, 'token')
  const writeToken = async (pod: KubeObject): Promise<void> => {
    writeFileSync(`${tokenFile}.new`, await tokenOf(client, account, { pod }))
    renameSync(`${tokenFile}.new`, tokenFile)
  }
  await writeToken(first)
  const roots = await meshRoots(client)
  const config = loadConfig(
    processInputs({
      XDS_ADDRESS: `https://127.0.0.1:${port}`,
      CA_ADDRESS: `https://127.0.0.1:${port}`,
      ALT_XDS_HOSTNAME: 'istiod.istio-system.svc',
      ALT_CA_HOSTNAME: 'istiod.istio-system.svc',
      XDS_ROOT_CA: roots,
      CA_ROOT_CA: roots,
      AUTH_TOKEN: tokenFile,
      CLUSTER_ID: 'Kubernetes',
      NODE_NAME: 'node1',
      POD_NAME: 'zt',
      POD_NAMESPACE: 'istio-system',
      INSTANCE_IP: '127.0.0.1',
    }),
  )
  assert.ok(config.xds !== undefined && config.ca !== undefined)
  const log = silentLogging().scope('test')
  const state = createMeshState()
  const held = new Set<string>()
  const looks = new Set<() => void>()
  state.subscribe(({ workloads }) => {
    for (const { new: workload } of workloads) if (workload !== undefined) held.add(workload.name)
    for (const look of looks) look()
  })
  const until = (name: string): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => void (held.has(name) && resolve())
      looks.add(look)
      look()
    })
  const metrics = createZtunnelMetrics(createMetricsRegistry())
  const mesh = connectXds(config, config.xds, { state, metrics, log })
  const ca = connectCa(config, config.ca, log)
  t.after(async () => {
    await ca[Symbol.asyncDispose]()
    await mesh[Symbol.asyncDispose]()
    await discovery.stop()
    await client.close()
    await api[Symbol.asyncDispose]()
  })
  await mesh.synced
  await until('web')
  await ca.requestCertificate(identity)

  await api[Symbol.asyncDispose]()
  api = await startApi(join(dir, 'api'), apiPort)
  await client.close()
  client = await createKubeClient({ kubeconfig: api.kubeconfig })
  // The pod that the first token is bound to goes, and with it the token.
  await client.delete(resources.pods, { ...account, name: 'zt-1' }, { gracePeriodSeconds: 0 })
  await assert.rejects(ca.requestCertificate(identity), /authenticat/)
  await createRunningPod(client, { namespace: 'app', name: 'meanwhile' }, { ip: '10.0.0.4', account: 'web' })
  await until('meanwhile')
  await writeToken(second)
  await ca.requestCertificate(identity)

  await discovery.stop()
  discovery = await plane()
  await createRunningPod(client, { namespace: 'app', name: 'late' }, { ip: '10.0.0.5', account: 'web' })
  await until('late')
})
