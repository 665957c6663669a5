// What owners of objects are told: of invalid ones that the API server took, of waypoints, of automatic addresses; as kubectl shows it.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { fromBinary } from '@bufbuild/protobuf'
import { type Condition, istioResources, type KubeObject, type Resource, resources } from '../../src/api/index.ts'
import { security, workload } from '../../src/proto/index.ts'
import { namespaceNamed } from '../support/cluster-objects.ts'
import { type RunningDiscovery, startDiscovery } from '../support/discovery.ts'
import { startTestApi, type TestApi } from '../support/embedded-api.ts'
import { observeXds, type XdsObserver } from '../support/xds-observer.ts'

const run = promisify(execFile)

interface Event extends KubeObject {
  readonly reason?: string
  readonly type?: string
  readonly message?: string
  readonly involvedObject?: { readonly kind?: string; readonly name?: string; readonly uid?: string }
}

type WithConditions = { readonly conditions?: readonly Condition[] }

const now = (): string => new Date().toISOString().replace(/\.\d+Z$/, 'Z')

const conditionOf = (object: KubeObject | undefined, type: string): Condition | undefined =>
  (object?.status as WithConditions | undefined)?.conditions?.find((condition) => condition.type === type)

const policy = (name: string, spec: object): KubeObject => ({
  apiVersion: 'security.istio.io/v1',
  kind: 'AuthorizationPolicy',
  metadata: { namespace: 'app', name },
  spec,
})

const serviceEntry = (name: string, spec: object, labels: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'networking.istio.io/v1',
  kind: 'ServiceEntry',
  metadata: { namespace: 'app', name, labels },
  spec: { ports: [{ number: 80, name: 'http', protocol: 'HTTP' }], ...spec },
})

describe('what the control plane tells the owners of objects', { timeout: 90_000 }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'lateen-status-'))
  let api: TestApi
  let discovery: RunningDiscovery
  let proxy: XdsObserver

  /** As in a cluster whose definitions are older than what is checked here. */
  async function takeAnything(resource: Resource): Promise<void> {
    const name = `${resource.plural}.${resource.group}`
    const crds = resources.customResourceDefinitions
    type Crd = KubeObject<{ versions: { schema: unknown }[] }>
    const crd = await api.client.get<Crd>(crds, { name })
    assert.ok(crd?.spec)
    const open = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
    const versions = crd.spec.versions.map((version) => ({ ...version, schema: open }))
    await api.client.replace(crds, { ...crd, spec: { ...crd.spec, versions } })
  }

  const until = <T extends KubeObject, R>(
    resource: Resource,
    name: string,
    find: (object: T | undefined) => R | undefined,
  ) => api.until<T, R>(resource, { namespace: 'app', name }, find)

  const eventAbout = (kind: string, name: string, message: RegExp) =>
    new Promise<Event>((resolve) => {
      const informer = api.client.informer<Event>(resources.events, { namespace: 'app' })
      const end = informer.subscribe((changes) => {
        for (const { object } of changes) {
          const isIt = object.involvedObject?.kind === kind && object.involvedObject.name === name
          if (!isIt || !message.test(object.message ?? '')) continue
          queueMicrotask(() => {
            end()
            void informer[Symbol.asyncDispose]()
          })
          resolve(object)
        }
      })
    })

  const actionOf = (name: string): security.Action | undefined => {
    const held = proxy.held.get(`app/${name}`)
    return held === undefined ? undefined : fromBinary(security.AuthorizationSchema, held.body).action
  }

  before(async () => {
    api = await startTestApi()
    for (const name of ['istio-system', 'app']) await api.client.create(resources.namespaces, namespaceNamed(name))
    for (const resource of [istioResources.authorizationPolicies, istioResources.virtualServices]) {
      await takeAnything(resource)
    }
    discovery = await startDiscovery({
      kubeconfig: api.server.kubeconfig,
      stateDir: dir,
      flags: { grpcAddr: '127.0.0.1:0', networksConfig: join(dir, 'none') },
    })
    proxy = observeXds(discovery.ports.plainGrpc ?? 0)
    await proxy.client.synced
  })
  after(async () => {
    await proxy?.[Symbol.asyncDispose]()
    await discovery?.stop()
    await api?.[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true })
  })

  test('of an object that went bad: condition, event, log line; the last good one serves on until it is mended', async () => {
    const { client } = api
    const good = { action: 'DENY', rules: [{ from: [{ source: { namespaces: ['x'] } }] }] }
    const created = await client.create(resources.authorizationPolicies, policy('turns', good))
    await proxy.until(() => actionOf('turns') === security.Action.DENY)
    const { version } = proxy.held.get('app/turns') ?? {}

    const body = { spec: { action: 'FORBID' } }
    await client.patch(resources.authorizationPolicies, created.metadata, { kind: 'merge', body })
    const condition = await until(resources.authorizationPolicies, 'turns', (object) => {
      const found = conditionOf(object, 'Valid')
      return found === undefined ? undefined : { ...found, generation: object?.metadata.generation }
    })
    assert.equal(condition.status, 'False')
    assert.equal(condition.reason, 'Invalid')
    assert.match(condition.message ?? '', /spec\.action/)
    assert.equal(condition.observedGeneration, condition.generation)
    const event = await eventAbout('AuthorizationPolicy', 'turns', /spec\.action.*served: the last valid one/)
    assert.deepEqual([event.type, event.reason], ['Warning', 'InvalidConfiguration'])
    assert.equal(event.involvedObject?.uid, created.metadata.uid)
    await discovery.log.until(/an invalid object is not taken; the last valid one stays.*app\/turns.*spec\.action/)
    const [problem] = (await discovery.page('problemsz')) as { name: string; served: string }[]
    assert.deepEqual([problem?.name, problem?.served], ['turns', 'the last valid one'])
    assert.equal(proxy.held.get('app/turns')?.version, version)

    // The conditions that others wrote, and those of how it is served, stay beside it.
    const present = await client.get(resources.authorizationPolicies, created.metadata)
    assert.equal(conditionOf(present, 'ZtunnelAccepted')?.status, 'True')

    await client.patch(resources.authorizationPolicies, created.metadata, {
      kind: 'merge',
      body: { spec: { action: 'ALLOW' } },
    })
    await proxy.until(() => actionOf('turns') === security.Action.ALLOW)
    await until(resources.authorizationPolicies, 'turns', (object) =>
      object !== undefined && conditionOf(object, 'Valid') === undefined ? true : undefined,
    )
    assert.deepEqual(await discovery.page('problemsz'), [])
  })

  test('of an object that was mended while nobody told: what a former process wrote goes', async () => {
    const { client } = api
    const key = { namespace: 'app', name: 'stale' }
    await client.create(resources.authorizationPolicies, policy('stale', { action: 'DENY' }))
    const left = { type: 'Valid', status: 'False', reason: 'Invalid', message: 'as it was', lastTransitionTime: now() }
    const foreign = { type: 'Theirs', status: 'True', reason: 'Said', message: '', lastTransitionTime: now() }
    await until(resources.authorizationPolicies, 'stale', (object) => conditionOf(object, 'ZtunnelAccepted'))
    await client.patch(
      resources.authorizationPolicies,
      key,
      { kind: 'merge', body: { status: { conditions: [left, foreign] } } },
      { subresource: 'status' },
    )
    await until(resources.authorizationPolicies, 'stale', (object) => {
      const isSettled =
        conditionOf(object, 'Valid') === undefined && conditionOf(object, 'ZtunnelAccepted') !== undefined
      return isSettled ? conditionOf(object, 'Theirs') : undefined
    })
  })

  test('with who wrote it', async () => {
    await api.client.create(resources.authorizationPolicies, policy('noted', { action: 'DENY' }))
    await until(resources.authorizationPolicies, 'noted', (object) => conditionOf(object, 'ZtunnelAccepted'))
    const object = await api.client.get(resources.authorizationPolicies, { namespace: 'app', name: 'noted' })
    const noted = (object?.metadata.managedFields ?? []) as { manager: string; subresource?: string }[]
    const writers = noted.flatMap(({ manager, subresource }) => (subresource === 'status' ? [manager] : []))
    assert.deepEqual(writers, ['istio-ambient-ztunnel-policy'])
  })

  test('of a policy that was never good: it closes what it may have meant to close', async () => {
    await api.client.create(resources.authorizationPolicies, policy('never', { action: 'ALLOW', rules: 'all of them' }))
    await eventAbout('AuthorizationPolicy', 'never', /served: as the narrowest it may mean/)
    await proxy.until(() => proxy.held.has('app/never'))
    const { groups, action } = fromBinary(
      security.AuthorizationSchema,
      proxy.held.get('app/never')?.body ?? new Uint8Array(),
    )
    assert.deepEqual([action, groups], [security.Action.ALLOW, []])
    await api.client.delete(resources.authorizationPolicies, { namespace: 'app', name: 'never' })
    await proxy.until(() => !proxy.held.has('app/never'))
  })

  test('of a kind that nothing is computed from yet', async () => {
    const route = {
      apiVersion: 'networking.istio.io/v1',
      kind: 'VirtualService',
      metadata: { namespace: 'app', name: 'r' },
    }
    await api.client.create(istioResources.virtualServices, { ...route, spec: { hosts: 7 } })
    const condition = await until(istioResources.virtualServices, 'r', (object) => conditionOf(object, 'Valid'))
    assert.match(condition.message ?? '', /spec\.hosts/)
  })

  test('of a waypoint: not there, refused, attached, and nothing once it is not referenced', async () => {
    const { client } = api
    const labels = { 'istio.io/use-waypoint': 'wp' }
    await client.create(resources.services, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'app', name: 'web', labels },
      spec: { ports: [{ name: 'http', port: 80 }] },
    } as KubeObject)
    await client.create(
      resources.serviceEntries,
      serviceEntry('ext', { hosts: ['ext.example'], resolution: 'DNS' }, labels),
    )
    const bound = (resource: Resource, name: string, reason: string) =>
      until(resource, name, (object) => {
        const found = conditionOf(object, 'istio.io/WaypointBound')
        return found?.reason === reason ? found : undefined
      })
    assert.equal((await bound(resources.services, 'web', 'WaypointIsNotReady')).status, 'False')

    const gateway = (waypointFor: string) => ({
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'Gateway',
      metadata: { namespace: 'app', name: 'wp', labels: { 'istio.io/waypoint-for': waypointFor } },
      spec: { gatewayClassName: 'istio-waypoint', listeners: [{ name: 'mesh', port: 15008, protocol: 'HBONE' }] },
    })
    await client.create(resources.gateways, gateway('workload') as KubeObject)
    const status = { addresses: [{ type: 'Hostname', value: 'wp.app.svc.cluster.local' }] }
    const key = { namespace: 'app', name: 'wp' }
    await client.patch(resources.gateways, key, { kind: 'merge', body: { status } }, { subresource: 'status' })
    await bound(resources.services, 'web', 'UnsupportedTrafficType')
    await client.patch(resources.gateways, key, {
      kind: 'merge',
      body: { metadata: { labels: { 'istio.io/waypoint-for': 'all' } } },
    })
    const accepted = await bound(resources.services, 'web', 'WaypointAccepted')
    assert.equal(accepted.message, 'Successfully attached to waypoint app/wp')
    await bound(resources.serviceEntries, 'ext', 'WaypointAccepted')

    await client.patch(
      resources.services,
      { namespace: 'app', name: 'web' },
      {
        kind: 'merge',
        body: { metadata: { labels: { 'istio.io/use-waypoint': null } } },
      },
    )
    await until(resources.services, 'web', (object) =>
      object !== undefined && conditionOf(object, 'istio.io/WaypointBound') === undefined ? true : undefined,
    )
  })

  test('of automatic addresses: given in order, of both families, not against a label, and given up when written', async () => {
    const { client } = api
    type Addresses = { readonly addresses?: readonly { readonly host: string; readonly value: string }[] }
    const addressesOf = (object: KubeObject | undefined) => (object?.status as Addresses | undefined)?.addresses ?? []
    const given = (name: string, count: number) =>
      until(resources.serviceEntries, name, (object) => {
        const addresses = addressesOf(object)
        return object !== undefined && addresses.length === count ? addresses : undefined
      })
    const off = { 'networking.istio.io/enable-autoallocate-ip': 'false' }
    await client.create(
      resources.serviceEntries,
      serviceEntry('off', { hosts: ['off.example'], resolution: 'DNS' }, off),
    )
    await client.create(resources.serviceEntries, serviceEntry('two', { hosts: ['a.x', 'b.x'], resolution: 'DNS' }))
    const addresses = await given('two', 4)
    assert.deepEqual(
      addresses.map(({ host }) => host),
      ['a.x', 'a.x', 'b.x', 'b.x'],
    )
    assert.match(addresses[0]?.value ?? '', /^240\.240\.0\.\d+$/)
    assert.match(addresses[1]?.value ?? '', /^2001:2::\w+$/)
    assert.equal(new Set(addresses.map(({ value }) => value)).size, 4)
    await proxy.until(() => {
      const held = proxy.held.get('app/a.x')
      const { type } = fromBinary(workload.AddressSchema, held?.body ?? new Uint8Array())
      return type.case === 'service' && type.value.addresses.length === 2
    })
    assert.deepEqual(addressesOf(await client.get(resources.serviceEntries, { namespace: 'app', name: 'off' })), [])

    // Somebody writes down an address that was given: it is theirs.
    const taken = addresses[0]?.value ?? ''
    await client.create(
      resources.serviceEntries,
      serviceEntry('own', { hosts: ['own.example'], resolution: 'STATIC', addresses: [taken] }),
    )
    const moved = await until(resources.serviceEntries, 'two', (object) => {
      const now = addressesOf(object)
      return now.length === 4 && now.every(({ value }) => value !== taken) ? now : undefined
    })
    assert.equal(moved.length, 4)
    await client.patch(
      resources.serviceEntries,
      { namespace: 'app', name: 'two' },
      {
        kind: 'merge',
        body: { spec: { addresses: ['10.99.0.1'] } },
      },
    )
    await given('two', 0)
  })

  test('kubectl shows it', async (context) => {
    const [kubectl = ''] = (process.env.KUBECTL ?? 'kubectl').split(':')
    if (
      !(await run(kubectl, ['version', '--client']).then(
        () => true,
        () => false,
      ))
    ) {
      context.skip('there is no kubectl')
      return
    }
    const show = async (...args: readonly string[]): Promise<string> =>
      (
        await run(kubectl, ['--kubeconfig', api.server.kubeconfig, '-n', 'app', ...args], {
          env: { HOME: dir, PATH: process.env.PATH },
        })
      ).stdout
    await api.client.patch(
      resources.authorizationPolicies,
      { namespace: 'app', name: 'turns' },
      {
        kind: 'merge',
        body: { spec: { action: 'FORBID' } },
      },
    )
    await until(resources.authorizationPolicies, 'turns', (object) => conditionOf(object, 'Valid'))
    const valid = '{.status.conditions[?(@.type=="Valid")].status}'
    assert.equal(await show('get', 'authorizationpolicy', 'turns', '-o', `jsonpath=${valid}`), 'False')
    const events = await show('get', 'events', '--field-selector', 'involvedObject.name=turns')
    assert.match(events, /Warning\s+InvalidConfiguration\s+authorizationpolicy\/turns\s+.*spec\.action/i)
    await show('wait', '--for=condition=istio.io/WaypointBound', 'serviceentry/ext', '--timeout=10s')
    assert.match(await show('describe', 'serviceentry', 'ext'), /WaypointAccepted/)
  })
})
