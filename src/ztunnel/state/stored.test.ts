import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createSharedTables, type TableView } from '../../shared-memory/index.ts'
import type { GatewayAddress, Policy, Service, Workload } from '../model.ts'
import { parseCidr } from './address.ts'
import { createFieldReader, createFieldWriter } from './fields.ts'
import { createPolicyLoader, storePolicy } from './stored-policy.ts'
import { createServiceLoader, storeService } from './stored-service.ts'
import { commonText, createWorkloadLoader, storeWorkload } from './stored-workload.ts'
import { tableCount, tables } from './tables.ts'

const record = <T>(model: { readonly [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record<T>(model, { noNullPrototype: true })

/** Plain names, texts of any characters, and long ones. */
const text = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.string({ unit: 'binary', maxLength: 10 }),
  fc.constantFrom('', '\0', '"', '\ud800', 'ns/host', 'x'.repeat(5000)),
)
const port = fc.integer({ min: 0, max: 65_535 })
const portMap = fc.array(fc.tuple(port, port), { maxLength: 4 }).map((entries) => new Map(entries))
const status = fc.constantFrom('Healthy' as const, 'Unhealthy' as const)
const gateway: fc.Arbitrary<GatewayAddress> = fc.oneof(
  record({
    destination: record({ kind: fc.constant('address' as const), address: record({ network: text, ip: text }) }),
    hbonePort: port,
  }),
  record({
    destination: record({
      kind: fc.constant('hostname' as const),
      hostname: record({ namespace: text, hostname: text }),
    }),
    hbonePort: port,
  }),
)
const withoutUndefined = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as T
const optional = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined })

const workload: fc.Arbitrary<Workload> = record({
  uid: text,
  name: text,
  namespace: text,
  addresses: fc.array(text, { maxLength: 3 }),
  hostname: text,
  network: text,
  networkMode: fc.constantFrom('Standard' as const, 'HostNetwork' as const),
  protocol: fc.constantFrom('TCP' as const, 'HBONE' as const),
  nativeTunnel: fc.boolean(),
  trustDomain: text,
  serviceAccount: text,
  node: text,
  clusterId: text,
  waypoint: optional(gateway),
  networkGateway: optional(gateway),
  applicationTunnel: optional(
    fc
      .record({ protocol: fc.constantFrom('NONE' as const, 'PROXY' as const), port: optional(port) })
      .map(withoutUndefined),
  ),
  canonicalName: text,
  canonicalRevision: text,
  workloadName: text,
  workloadType: text,
  locality: record({ region: text, zone: text, subzone: text }),
  capacity: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  status,
  authorizationPolicies: fc.array(text, { maxLength: 3 }),
  services: fc.array(fc.tuple(text, portMap), { maxLength: 3 }).map((entries) => new Map(entries)),
}).map((one) => withoutUndefined(one) as Workload)

const scope = fc.constantFrom(
  'Region' as const,
  'Zone' as const,
  'Subzone' as const,
  'Node' as const,
  'Cluster' as const,
  'Network' as const,
)
const service: fc.Arbitrary<Service> = record({
  name: text,
  namespace: text,
  hostname: text,
  vips: fc.array(record({ network: text, ip: text }), { maxLength: 3 }),
  cidrVips: fc.array(record({ network: text, cidr: text }), { maxLength: 3 }),
  ports: portMap,
  subjectAltNames: fc.array(text, { maxLength: 3 }),
  waypoint: optional(gateway),
  weightedWaypoints: fc.array(record({ destination: gateway, weight: fc.nat() }), { maxLength: 3 }),
  loadBalancer: optional(
    record({
      mode: fc.constantFrom('Standard' as const, 'Strict' as const, 'Failover' as const, 'Passthrough' as const),
      routingPreferences: fc.array(scope, { maxLength: 4 }),
      healthPolicy: fc.constantFrom('OnlyHealthy' as const, 'AllowAll' as const),
    }),
  ),
  ipFamilies: optional(fc.constantFrom('Dual' as const, 'IPv4' as const, 'IPv6' as const)),
  canonical: fc.boolean(),
  visibility: fc.constantFrom('Public' as const, 'Namespace' as const),
  fixedEndpoints: optional(
    fc
      .array(record({ workloadUid: text, ports: portMap, status }), { maxLength: 3 })
      .map((list) => new Map(list.map((one) => [one.workloadUid, one]))),
  ),
}).map((one) => withoutUndefined(one) as Service)

const texts = fc.array(
  fc.oneof(
    record({ kind: fc.constantFrom('exact' as const, 'prefix' as const, 'suffix' as const), value: text }),
    fc.constant({ kind: 'presence' as const }),
  ),
  { maxLength: 2 },
)
const blocks = fc.array(
  fc.constantFrom('10.0.0.0/8', '0.0.0.0/0', '10.1.2.3/32', 'fd00::/8', '::/0', '::ffff:10.0.0.0/8').map((one) => {
    const cidr = parseCidr(one)
    assert.ok(cidr)
    return cidr
  }),
  { maxLength: 2 },
)
const accounts = fc.array(record({ namespace: text, serviceAccount: text }), { maxLength: 2 })
const ports = fc.array(port, { maxLength: 2 })
const match = record({
  namespaces: texts,
  notNamespaces: texts,
  principals: texts,
  notPrincipals: texts,
  serviceAccounts: accounts,
  notServiceAccounts: accounts,
  sourceIps: blocks,
  notSourceIps: blocks,
  destinationIps: blocks,
  notDestinationIps: blocks,
  destinationPorts: ports,
  notDestinationPorts: ports,
})
const policy: fc.Arbitrary<Policy> = record({
  name: text,
  namespace: text,
  scope: fc.constantFrom('Global' as const, 'Namespace' as const, 'WorkloadSelector' as const),
  action: fc.constantFrom('Allow' as const, 'Deny' as const),
  dryRun: fc.boolean(),
  rejected: optional(text.filter((one) => one !== '')),
  rules: fc.array(fc.array(fc.array(match, { maxLength: 2 }), { maxLength: 2 }), { maxLength: 2 }),
}).map((one) => withoutUndefined(one) as Policy)

const shared = createSharedTables({ tables: tableCount, readers: 0, limitBytes: 16 * 1024 * 1024 })
const fields = createFieldWriter()

/** With what it has in common with others beside it. */
function storedWorkload(one: Workload, load: (view: TableView, leaf: number) => Workload): Workload {
  let leaf = 0
  shared.commit((transaction) => {
    const common = transaction.put(tables.texts, commonText(one), new Uint8Array())
    leaf = transaction.put(tables.workloads, one.uid, storeWorkload(fields, one, common))
  })
  return load(shared.view, leaf)
}

function stored<T>(key: string, bytes: Uint8Array, load: (view: TableView, leaf: number) => T): T {
  shared.commit((transaction) => transaction.put(0, key, bytes))
  return load(shared.view, shared.view.find(0, key))
}

test('a workload comes back as it was stored', () => {
  const load = createWorkloadLoader()
  fc.assert(fc.property(workload, (one) => assert.deepEqual(storedWorkload(one, load), one)))
})

test('a service comes back as it was stored', () => {
  const load = createServiceLoader()
  fc.assert(fc.property(service, (one) => assert.deepEqual(stored('key', storeService(fields, one), load), one)))
})

test('a policy comes back as it was stored', () => {
  const load = createPolicyLoader()
  fc.assert(fc.property(policy, (one) => assert.deepEqual(stored('key', storePolicy(fields, one), load), one)))
})

test('what pods of one deployment have in common is decoded once', () => {
  const load = createWorkloadLoader()
  const [one] = fc.sample(workload, 1)
  assert.ok(one)
  const first = storedWorkload({ ...one, uid: 'first' }, load)
  const second = storedWorkload({ ...one, uid: 'second' }, load)
  assert.equal(first.services, second.services)
  assert.equal(first.locality, second.locality)
  assert.notEqual(first.uid, second.uid)
})

test('numbers and texts come back in the order in which they were written', () => {
  const reader = createFieldReader()
  const field = fc.oneof(text, fc.maxSafeInteger().map(Math.abs))
  fc.assert(
    fc.property(fc.array(field, { maxLength: 20 }), (list) => {
      fields.begin()
      for (const one of list) {
        if (typeof one === 'number') fields.number(one)
        else fields.text(one)
      }
      const bytes = fields.finish()
      const read = stored('key', bytes, (view, leaf) => {
        reader.open(view, leaf)
        return list.map((one) => (typeof one === 'number' ? reader.number() : reader.text()))
      })
      assert.deepEqual(read, list)
    }),
  )
})
