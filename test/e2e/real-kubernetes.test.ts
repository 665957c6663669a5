// The control plane against the API server that Kubernetes ships, with the rights that `lateen manifest rights` prints and no others.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { type Condition, istioResources, type KubeObject, type Resource, resources } from '../../src/api/index.ts'
import { security, workload } from '../../src/proto/index.ts'
import { configMapOf, createRunningPod } from '../support/cluster-objects.ts'
import type { RunningDiscovery } from '../support/discovery.ts'
import { onceAccepted } from '../support/eventually.ts'
import { kubeApiServerIsMissing } from '../support/kube-apiserver.ts'
import { type MeshCluster, startMeshCluster } from '../support/mesh-cluster.ts'
import { observeXds, type XdsObserver } from '../support/xds-observer.ts'

interface Event extends KubeObject {
  readonly reason?: string
  readonly type?: string
  readonly message?: string
  readonly involvedObject?: { readonly kind?: string; readonly name?: string; readonly namespace?: string }
}

type WithConditions = { readonly conditions?: readonly Condition[] }
type ConfigMap = KubeObject & { readonly data?: Readonly<Record<string, string>> }

const conditionOf = (object: KubeObject | undefined, type: string): Condition | undefined =>
  (object?.status as WithConditions | undefined)?.conditions?.find((condition) => condition.type === type)

const app = (name: string) => ({ namespace: 'app', name })

function object(
  { group, version, kind }: Resource,
  name: string,
  spec: object,
  labels: Readonly<Record<string, string>> = {},
): KubeObject {
  const apiVersion = group === '' ? version : `${group}/${version}`
  return { apiVersion, kind, metadata: { ...app(name), labels: { ...labels } }, spec }
}

describe('the control plane on Kubernetes', { timeout: 180_000, skip: kubeApiServerIsMissing }, () => {
  let cluster: MeshCluster
  let discovery: RunningDiscovery
  let proxy: XdsObserver
  before(async () => {
    cluster = await startMeshCluster()
    discovery = await cluster.startDiscovery()
    proxy = observeXds(discovery.ports.plainGrpc ?? 0)
    await proxy.client.synced
  })
  after(async () => {
    await proxy?.[Symbol.asyncDispose]()
    await discovery?.stop()
    await cluster?.[Symbol.asyncDispose]()
  })

  const until = <T extends KubeObject, R>(
    resource: Resource,
    name: string,
    find: (found: T | undefined) => R | undefined,
  ) => cluster.api.until<T, R>(resource, app(name), find)

  function addressNamed(name: string): workload.Address['type'] | undefined {
    const held = proxy.held.get(name)
    return held === undefined ? undefined : fromBinary(workload.AddressSchema, held.body).type
  }
  function workloadNamed(name: string): workload.Workload | undefined {
    const type = addressNamed(name)
    return type?.case === 'workload' ? type.value : undefined
  }
  function serviceNamed(name: string): workload.Service | undefined {
    const type = addressNamed(name)
    return type?.case === 'service' ? type.value : undefined
  }
  const podUid = (name: string) => `Kubernetes//Pod/app/${name}`

  /** As in a cluster whose definitions are older than what is checked here. */
  async function takeAnything(name: string): Promise<void> {
    const crds = resources.customResourceDefinitions
    type Crd = KubeObject<{ versions: { schema: unknown }[] }>
    const crd = await cluster.client.get<Crd>(crds, { name })
    assert.ok(crd?.spec)
    const open = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
    const versions = crd.spec.versions.map((version) => ({ ...version, schema: open }))
    await cluster.client.replace(crds, { ...crd, spec: { ...crd.spec, versions } })
  }

  async function eventAbout(kind: string, name: string): Promise<Event> {
    await using informer = cluster.client.informer<Event>(resources.events)
    return await new Promise((resolve) => {
      informer.subscribe((changes) => {
        const found = changes.map(({ object: event }) => event)
        const one = found.find(({ involvedObject: of }) => of?.kind === kind && of.name === name)
        if (one !== undefined) resolve(one)
      })
    })
  }

  test('pods, nodes, services and their endpoints become addresses, and go with them', async () => {
    const { client } = cluster
    await client.create(resources.nodes, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: 'node1',
        labels: { 'topology.kubernetes.io/region': 'r1', 'topology.kubernetes.io/zone': 'z1' },
      },
    })
    const pod = await createRunningPod(client, app('web-0'), { ip: '10.1.0.1', account: 'web' })
    const ports = [{ name: 'http', port: 80, targetPort: 8080 }]
    const service = await client.create<KubeObject<{ clusterIP?: string }>>(
      resources.services,
      object(resources.services, 'web', { ports, selector: { app: 'web' } }) as KubeObject<{ clusterIP?: string }>,
    )
    await client.create(resources.endpointSlices, {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...app('web-1'), labels: { 'kubernetes.io/service-name': 'web' } },
      ...{
        addressType: 'IPv4',
        ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
        endpoints: [
          {
            addresses: ['10.1.0.1'],
            conditions: { ready: true },
            nodeName: 'node1',
            targetRef: { kind: 'Pod', ...app('web-0'), uid: pod.metadata.uid },
          },
        ],
      },
    })
    const key = 'app/web.app.svc.cluster.local'
    await client.patch(resources.pods, app('web-0'), { kind: 'merge', body: { metadata: { labels: { app: 'web' } } } })
    await proxy.until(() => Object.hasOwn(workloadNamed(podUid('web-0'))?.services ?? {}, key))
    const found = workloadNamed(podUid('web-0'))
    assert.deepEqual(
      [found?.serviceAccount, found?.node, found?.locality?.region, found?.locality?.zone],
      ['web', 'node1', 'r1', 'z1'],
    )
    assert.equal([...(serviceNamed(key)?.addresses[0]?.address ?? [])].join('.'), service.spec?.clusterIP)

    await client.delete(resources.pods, app('web-0'), { gracePeriodSeconds: 0 })
    await proxy.until(() => workloadNamed(podUid('web-0')) === undefined)
    await client.delete(resources.services, app('web'))
    await proxy.until(() => serviceNamed(key) === undefined)
  })

  test('fifty pods that come, change and go are told each, and none is left', async () => {
    const names = Array.from({ length: 50 }, (_, index) => `churn-${index}`)
    const inTurns = async (work: (name: string, index: number) => Promise<unknown>): Promise<void> => {
      for (let from = 0; from < names.length; from += 10) {
        await Promise.all(names.slice(from, from + 10).map((name, index) => work(name, from + index)))
      }
    }
    const { client } = cluster
    await inTurns((name, index) =>
      createRunningPod(client, app(name), { ip: `10.2.0.${index + 1}`, account: `a${index % 5}` }),
    )
    await proxy.until(() => names.every((name) => workloadNamed(podUid(name)) !== undefined))
    const body = { metadata: { labels: { 'app.kubernetes.io/name': 'renamed' } } }
    await inTurns((name) => client.patch(resources.pods, app(name), { kind: 'merge', body }))
    await proxy.until(() => names.every((name) => workloadNamed(podUid(name))?.canonicalName === 'renamed'))
    await inTurns((name) => client.delete(resources.pods, app(name), { gracePeriodSeconds: 0 }))
    await proxy.until(() => names.every((name) => workloadNamed(podUid(name)) === undefined))
  })

  test('a ServiceEntry gets addresses in its status, a WorkloadEntry becomes a workload of it', async () => {
    const { client } = cluster
    const ports = [{ number: 80, name: 'http', protocol: 'HTTP' }]
    const entry = { hosts: ['ext.example'], ports, resolution: 'STATIC', workloadSelector: { labels: { app: 'vm' } } }
    await client.create(resources.serviceEntries, object(resources.serviceEntries, 'ext', entry))
    type WithAddresses = KubeObject<unknown, { addresses?: readonly { readonly value: string }[] }>
    const addresses = await until<WithAddresses, readonly { readonly value: string }[]>(
      resources.serviceEntries,
      'ext',
      (found) => found?.status?.addresses,
    )
    assert.match(addresses[0]?.value ?? '', /^240\.240\./)
    const machine = { address: '10.3.0.1', labels: { app: 'vm' }, serviceAccount: 'vm', network: 'far' }
    await client.create(resources.workloadEntries, object(resources.workloadEntries, 'vm', machine))
    const uid = 'Kubernetes/networking.istio.io/WorkloadEntry/app/vm'
    await proxy.until(() => Object.hasOwn(workloadNamed(uid)?.services ?? {}, 'app/ext.example'))
    await proxy.until(() => serviceNamed('app/ext.example')?.addresses.length === addresses.length)
    assert.equal(workloadNamed(uid)?.network, 'far')
  })

  test('policies are served, and told how they are taken', async () => {
    const { client } = cluster
    const rules = [{ from: [{ source: { namespaces: ['x'] } }] }]
    await client.create(
      resources.authorizationPolicies,
      object(resources.authorizationPolicies, 'p', { action: 'DENY', rules }),
    )
    const strict = object(resources.peerAuthentications, 'strict', { mtls: { mode: 'STRICT' } })
    await client.create(resources.peerAuthentications, strict)
    await proxy.until(() => proxy.held.has('app/p') && proxy.held.has('istio-system/istio_converted_static_strict'))
    const accepted = await until(resources.authorizationPolicies, 'p', (found) => conditionOf(found, 'ZtunnelAccepted'))
    assert.equal(accepted.status, 'True')
    const { action } = fromBinary(security.AuthorizationSchema, proxy.held.get('app/p')?.body ?? new Uint8Array())
    assert.equal(action, security.Action.DENY)
  })

  test('a waypoint is told to those that name it, Services of Kubernetes among them', async () => {
    const { client } = cluster
    const labels = { 'istio.io/use-waypoint': 'wp' }
    const ports = [{ name: 'http', port: 80 }]
    await client.create(resources.services, object(resources.services, 'behind', { ports }, labels))
    const bound = (reason: string) =>
      until(resources.services, 'behind', (found) => {
        const condition = conditionOf(found, 'istio.io/WaypointBound')
        return condition?.reason === reason ? condition : undefined
      })
    assert.equal((await bound('WaypointIsNotReady')).status, 'False')
    const listeners = [{ name: 'mesh', port: 15008, protocol: 'HBONE' }]
    const gateway = object(
      resources.gateways,
      'wp',
      { gatewayClassName: 'istio-waypoint', listeners },
      { 'istio.io/waypoint-for': 'all' },
    )
    await client.create(resources.gateways, gateway)
    const body = { status: { addresses: [{ type: 'Hostname', value: 'wp.app.svc.cluster.local' }] } }
    await client.patch(resources.gateways, app('wp'), { kind: 'merge', body }, { subresource: 'status' })
    assert.equal((await bound('WaypointAccepted')).status, 'True')
  })

  test('an object that the API server took and the mesh cannot use is reported on it and by an Event', async () => {
    const { client } = cluster
    await takeAnything('virtualservices.networking.istio.io')
    const route = object(istioResources.virtualServices, 'bad', { hosts: 7 })
    await onceAccepted(422, () => cluster.client.create(istioResources.virtualServices, route))
    const condition = await until(istioResources.virtualServices, 'bad', (found) => conditionOf(found, 'Valid'))
    assert.match(condition.message ?? '', /spec\.hosts/)
    const event = await eventAbout('VirtualService', 'bad')
    assert.deepEqual([event.type, event.reason], ['Warning', 'InvalidConfiguration'])
    await client.patch(istioResources.virtualServices, app('bad'), { kind: 'merge', body: { spec: { hosts: ['a'] } } })
    await until(istioResources.virtualServices, 'bad', (found) =>
      found !== undefined && conditionOf(found, 'Valid') === undefined ? true : undefined,
    )
  })

  test('an Event tells of an object of the whole cluster, which has no namespace', async () => {
    await takeAnything('gatewayclasses.gateway.networking.k8s.io')
    const { apiVersion, kind } = object(resources.gatewayClasses, 'bad', {})
    const bad = { apiVersion, kind, metadata: { name: 'bad' }, spec: { controllerName: 7 } }
    await onceAccepted(422, () => cluster.client.create(resources.gatewayClasses, bad))
    const { metadata, involvedObject, reason } = await eventAbout('GatewayClass', 'bad')
    assert.deepEqual(
      [metadata.namespace, involvedObject?.namespace, reason],
      ['default', undefined, 'InvalidConfiguration'],
    )
  })

  test('mesh config of the ConfigMap is followed while the process runs', async () => {
    const { client } = cluster
    const mesh = (domain: string) => ({ mesh: `trustDomain: ${domain}\n` })
    await client.create(resources.configMaps, configMapOf('istio-system', 'istio', mesh('one.example')))
    await createRunningPod(client, app('domain'), { ip: '10.4.0.1', account: 'web' })
    await proxy.until(() => workloadNamed(podUid('domain'))?.trustDomain === 'one.example')
    const key = { namespace: 'istio-system', name: 'istio' }
    await client.patch(resources.configMaps, key, { kind: 'merge', body: { data: mesh('two.example') } })
    await proxy.until(() => workloadNamed(podUid('domain'))?.trustDomain === 'two.example')
    await client.patch(resources.configMaps, key, { kind: 'merge', body: { data: { mesh: 'trustDomain: [' } } })
    await discovery.log.until(/the mesh config is invalid; the last valid one stays/)
    assert.equal(workloadNamed(podUid('domain'))?.trustDomain, 'two.example')
    await client.delete(resources.configMaps, key)
    await proxy.until(() => workloadNamed(podUid('domain'))?.trustDomain !== 'two.example')
  })

  test('the roots are in every namespace, put right when somebody changes them, and the key in a Secret of its own', async () => {
    const { client } = cluster
    const name = 'istio-ca-root-cert'
    const isWhole = (found: ConfigMap | undefined) => found?.data?.['root-cert.pem']?.includes('BEGIN CERTIFICATE')
    const roots = await until<ConfigMap, string>(resources.configMaps, name, (found) =>
      isWhole(found) ? found?.data?.['root-cert.pem'] : undefined,
    )
    await client.patch(resources.configMaps, app(name), {
      kind: 'merge',
      body: { data: { 'root-cert.pem': 'x', other: 'kept' } },
    })
    const mended = await until<ConfigMap, ConfigMap>(resources.configMaps, name, (found) =>
      isWhole(found) ? found : undefined,
    )
    assert.deepEqual([mended.data?.['root-cert.pem'], mended.data?.other], [roots, 'kept'])
    const secret = await client.get<KubeObject & { type?: string }>(resources.secrets, {
      namespace: 'istio-system',
      name: 'istio-ca-secret',
    })
    assert.equal(secret?.type, 'istio.io/ca-root')
  })

  test('it was refused nothing that it asked for', () => {
    assert.deepEqual(cluster.refusals(), [])
  })
})
