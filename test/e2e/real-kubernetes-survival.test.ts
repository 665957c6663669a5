// What the control plane lives through on Kubernetes: an API server that dies, forgets versions or has no room, and the loss of replicas.
import assert from 'node:assert/strict'
import { request } from 'node:https'
import { after, before, describe, test } from 'node:test'
import { type KubeObject, type Resource, resources } from '../../src/api/index.ts'
import { isKubeError } from '../../src/kube/index.ts'
import { createRunningPod, namespaceNamed } from '../support/cluster-objects.ts'
import { eventually } from '../support/eventually.ts'
import { kubeApiServerIsMissing } from '../support/kube-apiserver.ts'
import { linkTo } from '../support/link.ts'
import { type MeshCluster, startMeshCluster } from '../support/mesh-cluster.ts'
import { type Replica, startReplica } from '../support/replicas.ts'
import { untilObject } from '../support/until-object.ts'
import { observeXds, type XdsObserver } from '../support/xds-observer.ts'

const app = (name: string) => ({ namespace: 'app', name })
const uidOf = (name: string) => `Kubernetes//Pod/app/${name}`
const runs = (cluster: MeshCluster, name: string, ip: string) =>
  createRunningPod(cluster.client, app(name), { ip, account: 'web' })
const gone = (cluster: MeshCluster, name: string) =>
  cluster.client.delete(resources.pods, app(name), { gracePeriodSeconds: 0 })

function podsIn({ held }: XdsObserver, prefix: string): readonly string[] {
  return [...held.keys()].filter((name) => name.startsWith(uidOf(prefix))).sort()
}

const policy = (name: string): KubeObject => ({
  apiVersion: 'security.istio.io/v1',
  kind: 'AuthorizationPolicy',
  metadata: app(name),
  spec: { action: 'DENY', rules: [{ from: [{ source: { namespaces: ['x'] } }] }] },
})

describe('the control plane on Kubernetes lives through', {
  timeout: 400_000,
  skip: kubeApiServerIsMissing,
  concurrency: false,
}, () => {
  let cluster: MeshCluster
  before(async () => {
    cluster = await startMeshCluster()
  })
  after(() => cluster?.[Symbol.asyncDispose]())

  test('an API server that is killed amid changes: the state serves on, and follows again', {
    timeout: 60_000,
  }, async () => {
    await using discovery = await cluster.startDiscovery()
    await using proxy = observeXds(discovery.ports.plainGrpc ?? 0)
    for (const n of [1, 2, 3]) await runs(cluster, `kill-kept-${n}`, `10.1.0.${n}`)
    await proxy.until(() => podsIn(proxy, 'kill-').length === 3)
    const churn = (async () => {
      for (let n = 0; ; n += 1) {
        await runs(cluster, `kill-churn-${n}`, `10.1.1.${n % 250}`)
        if (n > 5) await gone(cluster, `kill-churn-${n - 5}`)
      }
    })()
    const broken = assert.rejects(churn, { code: 0 })
    await proxy.until(() => podsIn(proxy, 'kill-churn').length > 5)
    await cluster.api.kill()
    await broken
    await discovery.log.until(/a watch broke.*ECONNREFUSED/)
    assert.equal(podsIn(proxy, 'kill-kept').length, 3)
    await cluster.api.start()
    await runs(cluster, 'kill-after', '10.1.2.1')
    await gone(cluster, 'kill-kept-1')
    const { items } = await cluster.client.list(resources.pods, { namespace: 'app' })
    const there = items.filter(({ status }) => (status as { podIP?: string }).podIP !== undefined)
    const wanted = there.map(({ metadata }) => uidOf(metadata.name)).sort()
    await proxy.until(() => podsIn(proxy, 'kill-').join() === wanted.join())
    for (const { metadata } of items) await gone(cluster, metadata.name)
    await proxy.until(() => podsIn(proxy, 'kill-').length === 0)
  })

  for (const flags of [[], ['--watch-cache=false']]) {
    test(`versions that are forgotten while it was cut off (${flags.join(' ') || 'watch cache'}): it lists again`, {
      timeout: 60_000,
    }, async () => {
      const prefix = flags.length === 0 ? 'cached-' : 'uncached-'
      await cluster.api.kill()
      await cluster.api.start(flags)
      await using link = await linkTo(cluster.api.port)
      await using discovery = await cluster.startDiscovery({ by: link.port })
      await using proxy = observeXds(discovery.ports.plainGrpc ?? 0)
      for (const n of [1, 2]) await runs(cluster, `${prefix}old-${n}`, `10.1.3.${n}`)
      await cluster.client.create(resources.authorizationPolicies, policy('old'))
      await proxy.until(() => podsIn(proxy, prefix).length === 2 && proxy.held.has('app/old'))
      link.cut()
      await gone(cluster, `${prefix}old-1`)
      await cluster.client.delete(resources.authorizationPolicies, app('old'))
      await runs(cluster, `${prefix}new`, '10.1.3.3')
      await cluster.client.create(resources.authorizationPolicies, policy('new'))
      await cluster.api.compact()
      await cluster.api.kill()
      await cluster.api.start(flags)
      const before = cluster.api.requests().length
      link.mend()
      await proxy.until(() => podsIn(proxy, prefix).join() === [uidOf(`${prefix}new`), uidOf(`${prefix}old-2`)].join())
      await proxy.until(() => proxy.held.has('app/new') && !proxy.held.has('app/old'))
      const lists = cluster.api
        .requests()
        .slice(before)
        .filter(({ verb, requestURI }) => verb === 'list' && requestURI.startsWith('/api/v1/pods?'))
      assert.ok(lists.length > 0, 'pods were listed again')
      for (const name of ['old-2', 'new']) await gone(cluster, prefix + name)
      await cluster.client.delete(resources.authorizationPolicies, app('new'))
    })
  }

  test('an API server that has no room for it: it waits as long as it is asked to, and starts when there is', {
    timeout: 60_000,
  }, async () => {
    await cluster.api.kill()
    await cluster.api.start()
    const { client } = cluster
    const [levels, schemas] = ['PriorityLevelConfiguration', 'FlowSchema'].map(
      (kind): Resource => ({
        group: 'flowcontrol.apiserver.k8s.io',
        version: 'v1',
        kind,
        plural: `${kind.toLowerCase()}s`,
        namespaced: false,
      }),
    ) as [Resource, Resource]
    const apiVersion = 'flowcontrol.apiserver.k8s.io/v1'
    const metadata = { name: 'no-room' }
    const limited = { nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0 }
    const spec = { type: 'Limited', limited: { ...limited, limitResponse: { type: 'Reject' } } }
    await client.create(levels, { apiVersion, kind: 'PriorityLevelConfiguration', metadata: { ...metadata }, spec })
    const account = { kind: 'ServiceAccount', serviceAccount: { name: 'istiod', namespace: 'istio-system' } }
    const all = { verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*'] }
    await client.create(schemas, {
      apiVersion,
      kind: 'FlowSchema',
      metadata: { ...metadata },
      spec: {
        priorityLevelConfiguration: { name: 'no-room' },
        matchingPrecedence: 3,
        rules: [{ subjects: [account], resourceRules: [all] }],
      },
    })
    const token = await cluster.tokenOf('istiod')
    const istiod = await cluster.api.as(token)
    await using crowd = new AsyncDisposableStack()
    crowd.defer(async () => {
      await client.delete(schemas, metadata)
      await client.delete(levels, metadata)
    })
    // One request is let in although there is no room: it never ends. Those from before the level was in force do not count.
    const isLevelInForce = async (): Promise<boolean> => {
      const held = holdRequest(cluster.api, token)
      const isTurnedAway = await istiod.list(resources.nodes).then(
        () => false,
        (error: unknown) => isKubeError(error, 429),
      )
      if (isTurnedAway) crowd.defer(() => held[Symbol.dispose]())
      else held[Symbol.dispose]()
      return isTurnedAway
    }
    await eventually(isLevelInForce, 'the level in force', 30_000)
    const from = cluster.api.requests().length
    const starting = cluster.startDiscovery()
    const turnedAway = () =>
      cluster.api
        .requests()
        .slice(from)
        .filter(({ responseStatus, requestURI }) => responseStatus?.code === 429 && requestURI.includes('name%3Distio'))
    await eventually(() => turnedAway().length >= 4, 'four requests turned away', 30_000)
    const [first, , third] = turnedAway().map(({ requestReceivedTimestamp }) => Date.parse(requestReceivedTimestamp))
    // Mesh config is read twice, for the mesh and for its networks: two requests a round.
    assert.ok((third ?? 0) - (first ?? 0) >= 900, `asked again after ${(third ?? 0) - (first ?? 0)} ms`)
    await crowd.disposeAsync()
    await using discovery = await starting
    await using proxy = observeXds(discovery.ports.plainGrpc ?? 0)
    await proxy.client.synced
  })

  test('the loss of the replica that writes: another one does, and one that stops hands over', {
    timeout: 90_000,
  }, async () => {
    const { client } = cluster
    const kubeconfig = await cluster.kubeconfigOf('istiod')
    const lease = { namespace: 'istio-system', name: 'lateen-leader' }
    type Lease = KubeObject<{ holderIdentity?: string }>
    const holder = (of: (name: string) => boolean) =>
      untilObject<Lease, string>(
        client,
        resources.leases,
        lease,
        (found) => (of(found?.spec?.holderIdentity ?? '') ? found?.spec?.holderIdentity : undefined),
        40_000,
      )
    const rootIn = async (namespace: string): Promise<void> => {
      await client.create(resources.namespaces, namespaceNamed(namespace))
      await cluster.api.until(resources.configMaps, { namespace, name: 'istio-ca-root-cert' }, (found) => found)
    }
    const replicas = new Map<string, Replica>()
    for (const name of ['one', 'two', 'three']) replicas.set(name, await startReplica(kubeconfig, name))
    try {
      const first = await holder((name) => replicas.has(name))
      await replicas.get(first)?.kill()
      const second = await holder((name) => replicas.has(name) && name !== first)
      await rootIn('after-kill')
      const stopping = replicas.get(second)?.stop()
      const third = await holder((name) => replicas.has(name) && name !== first && name !== second)
      assert.equal(await stopping, 0)
      await rootIn('after-stop')
      assert.equal(new Set([first, second, third]).size, 3)
    } finally {
      for (const replica of replicas.values()) await replica.kill()
    }
    assert.deepEqual(cluster.refusals(), [])
  })
})

/** A request that the API server waits for the body of, until it is disposed of. */
function holdRequest({ port, ca }: { readonly port: number; readonly ca: string }, token: string): Disposable {
  const held = request({
    host: '127.0.0.1',
    port,
    ca,
    method: 'POST',
    path: '/apis/authentication.k8s.io/v1/tokenreviews',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': '100' },
  })
  held.on('error', () => {})
  held.write('{')
  return { [Symbol.dispose]: () => void held.destroy() }
}
