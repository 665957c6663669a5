// Several clusters under random changes, mesh config, networks and departing clusters included: the index is the one that is
// computed from nothing, whatever the order in which the same objects are read.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import type { KubeObject } from '../../api/index.ts'
import type { Pace } from '../../collections/index.ts'
import { workload } from '../../proto/index.ts'
import type { AmbientMeshConfig } from './inputs.ts'
import type { AmbientMeshNetworks } from './network-plan.ts'
import { createTestMesh, inputsByKind, make, type TestMesh } from './testing.ts'

const pick = fc.constantFrom
const some = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(fields, { requiredKeys: [] })
const namespace = pick('istio-system', 'ns1', 'ns2')
const path = fc.tuple(namespace, pick('x', 'y')).map(([where, name]) => `${where}/${name}`)
const cluster = pick('c1', 'c1', 'c2', 'c3')
const network = pick('', 'n1', 'n2')
const address = pick('10.0.0.1', '10.0.0.2', '10.8.0.1', 'fd00::1')
const marks = some({
  app: pick('a', 'b'),
  'istio.io/use-waypoint': pick('x', 'y', 'none'),
  'istio.io/use-waypoint-namespace': pick('ns1', 'ns2'),
  'istio.io/use-waypoint-canary': pick('x', 'y'),
  'istio.io/ingress-use-waypoint': pick('true', 'false'),
  'istio.io/global': pick('true'),
  'istio.io/rev': pick('blue', 'green'),
  'gateway.networking.k8s.io/gateway-name': pick('x'),
  'topology.istio.io/network': pick('n1', 'n2'),
})
const annotations = some({
  'networking.istio.io/traffic-distribution': pick('PreferClose', 'Any'),
  'istio.io/use-waypoint-canary-weight': pick('5', '500'),
  'istio.io/dry-run': pick('true'),
  'ambient.istio.io/redirection': pick('enabled'),
  'gateway.istio.io/service-account': pick('other'),
})
const metadata = fc
  .tuple(marks, annotations, pick(undefined, '2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'))
  .map(([labels, notes, created]) => ({
    labels,
    annotations: notes,
    ...(created === undefined ? {} : { creationTimestamp: created }),
  }))
const allowedRoutes = pick<object | undefined>(
  undefined,
  { namespaces: { from: 'All' } },
  { namespaces: { from: 'Selector', selector: { matchLabels: { app: 'a' } } } },
)
const places = fc.subarray([
  { type: 'IPAddress', value: '192.0.2.1' },
  { type: 'Hostname', value: 'gw.example.com' },
  { value: '192.0.2.2' },
])

const anyObject: fc.Arbitrary<KubeObject> = fc.oneof(
  fc.tuple(namespace, marks).map(([name, labels]) => make.namespace(name, labels)),
  fc
    .tuple(pick('node', 'other'), pick('z1', 'z2'))
    .map(([name, zone]) => make.node(name, { 'topology.kubernetes.io/zone': zone })),
  fc
    .tuple(path, address, metadata, fc.boolean(), pick('Running', 'Failed'), pick('sa', 'sb'))
    .map(([at, ip, own, ready, phase, serviceAccountName]) =>
      Object.assign(make.pod(at, ip, own.labels, own, { serviceAccountName }), {
        status: { phase, podIP: ip, conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
      }),
    ),
  fc
    .tuple(
      path,
      pick('None', '10.1.0.1', '10.1.0.2'),
      some({ app: pick('a', 'b') }),
      metadata,
      pick('http', 15008, 8080),
    )
    .map(([at, clusterIP, selector, own, targetPort]) =>
      Object.assign(make.service(at, clusterIP, selector, own), {
        spec: { clusterIP, selector, ports: [{ name: 'http', port: targetPort === 15008 ? 15008 : 80, targetPort }] },
        status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
      }),
    ),
  fc
    .tuple(namespace, pick('x', 'y'), pick('x', 'y'))
    .map(([where, service, pod]) =>
      make.slice(`${where}/s`, service, [
        { addresses: ['10.5.0.1'] },
        { addresses: ['10.5.0.2'], targetRef: { kind: 'Pod', name: pod, uid: `${where}/${pod}` } },
      ]),
    ),
  fc
    .tuple(
      path,
      metadata,
      allowedRoutes,
      places,
      pick('istio-waypoint', 'istio-remote', 'istio-east-west'),
      pick('all', 'service', undefined),
    )
    .map(([at, own, routes, addresses, gatewayClassName, traffic]) =>
      make.gateway(
        at,
        traffic === undefined ? own : { ...own, labels: { ...own.labels, 'istio.io/waypoint-for': traffic } },
        {
          gatewayClassName,
          listeners: [
            { name: 'mesh', port: 15008, protocol: 'HBONE', tls: { mode: 'Terminate' }, allowedRoutes: routes },
          ],
        },
        addresses,
      ),
    ),
  pick('workload', 'all').map((traffic) =>
    make.gatewayClass('istio-waypoint', { labels: { 'istio.io/waypoint-for': traffic } }),
  ),
  fc
    .tuple(
      path,
      metadata,
      fc.subarray(['one.com', '*.two.com', 'x.ns1.svc.cluster.local']),
      fc.subarray([
        { address: '10.6.0.1', network: 'n2' },
        { address: '10.6.0.2', labels: { 'istio.io/use-waypoint': 'x' } },
        { address: 'host' },
      ]),
      pick('STATIC', 'DNS', 'NONE', 'DYNAMIC_DNS'),
      pick(undefined, { labels: { app: 'a' } }),
      fc.subarray(['10.7.0.1', '10.7.1.0/24', 'bad'], { maxLength: 2 }),
    )
    .map(([at, own, hosts, endpoints, resolution, workloadSelector, addresses]) =>
      make.serviceEntry(
        at,
        { hosts, resolution, addresses, ...(endpoints.length > 0 ? { endpoints } : { workloadSelector }) },
        own,
      ),
    ),
  fc
    .tuple(path, pick('10.0.0.1', 'host', ''), network, metadata)
    .map(([at, where, net, own]) =>
      make.workloadEntry(at, { address: where, network: net, labels: { app: 'a' } }, own),
    ),
  fc
    .tuple(
      path,
      metadata,
      pick(undefined, {}, { app: 'a' }),
      pick('ALLOW', 'DENY'),
      pick(undefined, [{ kind: 'Service', group: '', name: 'x' }]),
    )
    .map(([at, own, matchLabels, action, targetRefs]) => {
      const target = targetRefs === undefined ? { selector: { matchLabels } } : { targetRefs }
      return {
        ...make.policy(at, { action, rules: [{}], ...target }),
        metadata: { ...make.policy(at, {}).metadata, ...own },
      }
    }),
  fc
    .tuple(
      path,
      metadata,
      pick(undefined, { app: 'a' }),
      pick('STRICT', 'PERMISSIVE', 'UNSET'),
      pick(undefined, { 80: { mode: 'STRICT' }, 81: { mode: 'DISABLE' } }),
    )
    .map(([at, own, matchLabels, mode, portLevelMtls]) => {
      const peer = make.peer(at, { selector: { matchLabels }, mtls: { mode }, portLevelMtls })
      return { ...peer, metadata: { ...peer.metadata, ...own } }
    }),
)

const meshConfig: fc.Arbitrary<AmbientMeshConfig> = some<AmbientMeshConfig>({
  trustDomain: pick('mesh.example', 'cluster.local'),
  rootNamespace: pick('istio-system', 'ns2'),
  discoverySelectors: pick(
    [],
    [{ matchLabels: { app: 'a' } }],
    [{ matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] }],
  ),
  serviceScopeConfigs: pick(
    [],
    [{ scope: 'GLOBAL' }],
    [{ servicesSelector: { matchLabels: { 'istio.io/global': 'true' } }, scope: 'GLOBAL' }],
  ),
  serviceEntryVisibility: pick<NonNullable<AmbientMeshConfig['serviceEntryVisibility']>>(
    { defaultVisibility: 'NAMESPACE' },
    { policies: [{ matchingRules: [{ namespaceSelector: { matchLabels: { app: 'a' } } }], visibility: 'NONE' }] },
  ),
})
const meshNetworks: fc.Arbitrary<AmbientMeshNetworks> = pick<AmbientMeshNetworks>(
  { networks: {} },
  { networks: { n2: { endpoints: [{ fromRegistry: 'c2' }], gateways: [{ address: '192.0.2.1', port: 15008 }] } } },
  { networks: { n1: { endpoints: [{ fromCidr: '10.8.0.0/16' }] } } },
)

type Event =
  | { readonly kind: 'set' | 'delete'; readonly cluster: string; readonly object: KubeObject }
  | { readonly kind: 'config'; readonly config: AmbientMeshConfig }
  | { readonly kind: 'networks'; readonly networks: AmbientMeshNetworks }
  | { readonly kind: 'trustDomain'; readonly cluster: string; readonly trustDomain: string }
  | { readonly kind: 'leave'; readonly cluster: string }

const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 20, arbitrary: fc.record({ kind: pick('set' as const), cluster, object: anyObject }) },
  { weight: 6, arbitrary: fc.record({ kind: pick('delete' as const), cluster, object: anyObject }) },
  { weight: 2, arbitrary: fc.record({ kind: pick('config' as const), config: meshConfig }) },
  { weight: 1, arbitrary: fc.record({ kind: pick('networks' as const), networks: meshNetworks }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: pick('trustDomain' as const),
      cluster: pick('c2', 'c3'),
      trustDomain: pick('two.example'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: pick('leave' as const), cluster: pick('c2', 'c3') }) },
)

function play({ inputs }: TestMesh, one: Event): void {
  switch (one.kind) {
    case 'set':
    case 'delete': {
      const kind = inputsByKind[one.object.kind]
      if (kind === undefined) throw new TypeError(`no input for kind ${one.object.kind}`)
      const { namespace: where, name } = one.object.metadata
      if (one.kind === 'set') inputs.feed(one.cluster, kind).set(one.object as never)
      else inputs.feed(one.cluster, kind).delete(where === undefined ? { name } : { namespace: where, name })
      return
    }
    case 'config':
      inputs.meshConfig.set(one.config)
      return
    case 'networks':
      inputs.meshNetworks.set(one.networks)
      return
    case 'trustDomain':
      inputs.trustDomains.set(one.cluster, one.trustDomain)
      return
    case 'leave':
      inputs.removeCluster(one.cluster)
  }
}

/** What is left of the events before: one event for each thing that is there. */
class Remaining {
  readonly #events = new Map<string, Event>()

  note(one: Event): void {
    switch (one.kind) {
      case 'set':
      case 'delete': {
        const { kind, metadata: own } = one.object
        const key = `${one.cluster} ${kind}/${own.namespace ?? ''}/${own.name}`
        if (one.kind === 'set') this.#events.set(key, one)
        else this.#events.delete(key)
        return
      }
      case 'config':
      case 'networks':
        this.#events.set(one.kind, one)
        return
      case 'trustDomain':
        this.#events.set(`${one.cluster} trustDomain`, one)
        return
      case 'leave':
        for (const key of this.#events.keys()) if (key.startsWith(`${one.cluster} `)) this.#events.delete(key)
    }
  }

  /** In an order that depends on the seed alone. */
  shuffled(seed: number): Event[] {
    const place = (text: string): number =>
      [...text].reduce((sum, character) => (Math.imul(sum, 31) + character.charCodeAt(0)) | 0, seed)
    return [...this.#events].sort(([a], [b]) => place(a) - place(b)).map(([, one]) => one)
  }
}

function contentOf({ index }: TestMesh): string[] {
  return [
    ...[...index.addresses.list(), ...index.authorizations.list()].map(
      ({ name, version, aliases }) => `${name} ${version} ${aliases}`,
    ),
    ...[...index.conditions.entries()].map(([key, { conditions }]) => `${key} ${JSON.stringify(conditions)}`),
    ...[...index.differingPorts.entries(), ...index.unusedGateways.entries()].map((one) => JSON.stringify(one)),
  ].sort()
}

test('any clusters under any changes: incremental and from nothing agree, in any order', async () => {
  const waves = fc.array(fc.array(event, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 6 })
  const settings = fc.record({
    multiNetwork: fc.boolean(),
    autoAllowWaypoints: fc.boolean(),
    dryRunPolicies: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(waves, settings, fc.integer(), async (all, flags, seed) => {
      const mesh = createTestMesh({ ...flags, revision: 'blue' })
      const remaining = new Remaining()
      const heard = new Map<string, string>()
      mesh.index.addresses.subscribe((changes) => {
        for (const { name, old, new: next } of changes) {
          if (old !== undefined && next !== undefined)
            assert.notEqual(`${old.version} ${old.aliases}`, `${next.version} ${next.aliases}`)
          if (next === undefined) heard.delete(name)
          else heard.set(name, next.version)
        }
      })
      for (const events of all) {
        mesh.graph.transaction(() => {
          for (const one of events) {
            play(mesh, one)
            remaining.note(one)
          }
        })
        const fresh = createTestMesh({ ...flags, revision: 'blue' })
        for (const one of remaining.shuffled(seed)) play(fresh, one)
        assert.deepEqual(contentOf(mesh), contentOf(fresh))
        const served = [...mesh.index.addresses.list()].map(({ name, version }) => [name, version])
        assert.deepEqual([...heard].sort(), served.sort())
        for (const { name, body } of mesh.index.workloads.list()) {
          const { authorizationPolicies, services } = fromBinary(workload.WorkloadSchema, body)
          for (const policy of authorizationPolicies) {
            assert.ok(mesh.index.authorizations.get(policy), `${name} lists ${policy}, which is not sent`)
          }
          for (const service of Object.keys(services)) {
            assert.ok(mesh.index.addresses.get(service), `${name} belongs to ${service}, which is not served`)
          }
        }
        assert.deepEqual(mesh.reports, [])
        await mesh.index.whenSynced
      }
    }),
    { numRuns: 150 },
  )
})

/** Pauses after so many steps; what is left goes on when it is told to. */
function inSteps(steps: number): { readonly pace: Pace; goOn(): boolean } {
  let taken = 0
  let next: (() => void) | undefined
  return {
    pace: {
      shouldPause: () => {
        taken += 1
        return taken % steps === 0
      },
      later: (resume) => {
        next = resume
      },
    },
    goOn: () => {
      const resume = next
      next = undefined
      resume?.()
      return resume !== undefined
    },
  }
}

test('changes that come while others are being computed, departing clusters too, are all in what is served in the end', async () => {
  const waves = fc.array(fc.array(event, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(waves, fc.integer({ min: 2, max: 40 }), fc.integer(), async (all, steps, seed) => {
      const settings = { multiNetwork: true, autoAllowWaypoints: true, revision: 'blue' }
      const stepwise = inSteps(steps)
      const mesh = createTestMesh(settings, stepwise.pace)
      const remaining = new Remaining()
      for (const events of all) {
        mesh.graph.transaction(() => {
          for (const one of events) {
            play(mesh, one)
            remaining.note(one)
          }
        })
        stepwise.goOn()
      }
      while (stepwise.goOn());
      const fresh = createTestMesh(settings)
      for (const one of remaining.shuffled(seed)) play(fresh, one)
      assert.deepEqual(contentOf(mesh), contentOf(fresh))
      await fresh.index.whenSynced
    }),
    { numRuns: 100 },
  )
})
