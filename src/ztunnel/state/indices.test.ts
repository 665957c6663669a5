import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Service, Workload } from '../model.ts'
import { cidrContains, ipBits, parseCidr } from './address.ts'
import { openMeshReader } from './open-reader.ts'
import { createMeshState, type MeshUpdate } from './store.ts'
import { isVisible, type MeshView, serviceKey } from './view.ts'

const networks = ['', 'n/w']
const ips = ['10.0.0.1', '10.0.0.2', '10.0.1.1', 'fd00::1']
const namespaces = ['a', 'b', 'c']
const hostnames = ['x.example', 'Y.example', 'z.example']
const uids = ['c//Pod/a/1', 'c//Pod/a/2', 'entry/1', 'entry/2', 'a/x.example']
const blocks = ['10.0.0.0/24', '10.0.0.0/16', '10.0.0.0/8', '0.0.0.0/0', 'fd00::/64', 'fd00::/8']
const keys = namespaces.flatMap((namespace) => hostnames.map((hostname) => `${namespace}/${hostname}`))

const one = <T>(values: readonly T[]) => fc.constantFrom(...values)
const few = <T>(values: readonly T[]) => fc.uniqueArray(one(values), { maxLength: 3 })
const workload: fc.Arbitrary<Workload> = fc
  .record({
    uid: one(uids),
    name: one(['one', 'two']),
    namespace: one(namespaces),
    addresses: few(ips),
    hostname: one(['', 'w.example']),
    network: one(networks),
    networkMode: one(['Standard', 'Standard', 'HostNetwork'] as const),
    protocol: one(['TCP', 'HBONE'] as const),
    serviceAccount: one(['s', 't']),
    trustDomain: one(['td', 'other']),
    node: one(['here', 'there']),
    status: one(['Healthy', 'Unhealthy'] as const),
    services: few(keys).map((list) => new Map(list.map((key) => [key, new Map([[80, 8080]])]))),
  })
  .map((given) => ({ ...plainWorkload, ...given }))
const plainWorkload = {
  nativeTunnel: false,
  clusterId: 'c',
  canonicalName: '',
  canonicalRevision: '',
  workloadName: '',
  workloadType: 'pod',
  locality: { region: '', zone: '', subzone: '' },
  capacity: 1,
  authorizationPolicies: [],
}
const service: fc.Arbitrary<Service> = fc
  .record({
    namespace: one(namespaces),
    hostname: one(hostnames),
    vips: few(ips).chain((list) => one(networks).map((network) => list.map((ip) => ({ network, ip })))),
    cidrVips: few(blocks).chain((list) => one(networks).map((network) => list.map((cidr) => ({ network, cidr })))),
    canonical: fc.boolean(),
    visibility: one(['Public', 'Namespace'] as const),
  })
  .map((given) => ({ name: 's', ports: new Map([[80, 80]]), subjectAltNames: [], weightedWaypoints: [], ...given }))
const push: fc.Arbitrary<MeshUpdate> = fc.record({
  workloads: fc.array(workload, { maxLength: 4 }),
  services: fc.array(service, { maxLength: 3 }),
  removedAddresses: fc.array(one([...uids, ...keys]), { maxLength: 3 }),
})

/** The mesh as plain lists: every question is answered by looking at everything. */
function createModel() {
  const workloads = new Map<string, Workload>()
  const services = new Map<string, Service>()
  /** Where a service is found, in the order in which it came there. */
  const found = new Map<string, string[]>()

  function placesOf(of: Service): string[] {
    return [
      `host ${of.hostname.toLowerCase()}`,
      ...of.vips.map(({ network, ip }) => `vip ${ip} ${network}`),
      ...of.cidrVips.map(({ network, cidr }) => `block ${cidr} ${network}`),
    ]
  }
  function move(key: string, now: Service | undefined): void {
    const before = services.get(key)
    const [left, entered] = [before === undefined ? [] : placesOf(before), now === undefined ? [] : placesOf(now)]
    for (const place of left) {
      if (!entered.includes(place))
        found.set(
          place,
          (found.get(place) ?? []).filter((other) => other !== key),
        )
    }
    for (const place of entered) if (!left.includes(place)) found.set(place, [...(found.get(place) ?? []), key])
    if (now === undefined) services.delete(key)
    else services.set(key, now)
  }
  const at = (place: string): Service[] => (found.get(place) ?? []).flatMap((key) => services.get(key) ?? [])
  function best(list: readonly Service[], client: string | undefined): Service | undefined {
    const visible = list.filter((candidate) => isVisible(candidate, client))
    return (
      visible.find((candidate) => candidate.namespace === client) ??
      visible.findLast((candidate) => candidate.canonical) ??
      visible[0]
    )
  }

  return {
    workloads,
    services,
    apply(update: MeshUpdate) {
      for (const put of update.services ?? []) move(serviceKey(put), put)
      for (const put of update.workloads ?? []) {
        workloads.delete(put.uid)
        workloads.set(put.uid, put)
      }
      for (const key of update.removedAddresses ?? []) if (!workloads.delete(key)) move(key, undefined)
    },
    byAddress(network: string, ip: string): Workload | undefined {
      const all = [...workloads.values()].filter(
        (candidate) =>
          candidate.networkMode === 'Standard' && candidate.network === network && candidate.addresses.includes(ip),
      )
      const pods = all.filter((candidate) => candidate.uid.includes('//Pod/'))
      const first = pods.length > 0 ? pods : all
      return first.findLast((candidate) => candidate.protocol === 'HBONE') ?? first.at(-1)
    },
    byHostname: (hostname: string) => at(`host ${hostname.toLowerCase()}`),
    best,
    byVip(network: string, ip: string, client: string | undefined): Service | undefined {
      const exact = best(at(`vip ${ip} ${network}`), client)
      if (exact !== undefined) return exact
      const bits = ipBits(ip)
      const containing = blocks
        .map((text) => ({ text, cidr: parseCidr(text) }))
        .filter(({ cidr }) => cidr !== undefined && cidrContains(cidr, bits))
        .sort((a, b) => (b.cidr?.length ?? 0) - (a.cidr?.length ?? 0))
        .map(({ text }) => at(`block ${text} ${network}`).filter((candidate) => isVisible(candidate, client)))
      const mine = containing.map((list) => list.filter((candidate) => candidate.namespace === client))
      const longest = [...mine, ...containing].find((list) => list.length > 0)
      return best(longest ?? [], undefined)
    },
    membersOf: (key: string) => [...workloads.values()].filter((candidate) => candidate.services.has(key)),
  }
}

function assertSame(view: MeshView, model: ReturnType<typeof createModel>): void {
  for (const network of networks) {
    for (const ip of ips) {
      assert.deepEqual(view.workloadByAddress(network, ip), model.byAddress(network, ip))
      for (const client of [undefined, ...namespaces]) {
        assert.deepEqual(view.serviceByVip(network, ip, client), model.byVip(network, ip, client))
      }
    }
  }
  for (const hostname of hostnames) {
    assert.deepEqual(view.servicesByHostname(hostname), model.byHostname(hostname))
    assert.deepEqual(view.serviceByHostname(hostname, 'b'), model.best(model.byHostname(hostname), 'b'))
  }
  for (const key of keys) {
    const of = model.services.get(key)
    assert.deepEqual(view.service(key), of)
    if (of === undefined) continue
    assert.deepEqual(
      [...view.endpoints(of)].map((endpoint) => endpoint.workload),
      model.membersOf(key),
    )
  }
  const staged = keys.filter((key) => !model.services.has(key) && model.membersOf(key).length > 0)
  assert.deepEqual([...view.stagedServices()].map(([key]) => key).sort(), staged.sort())
  assert.deepEqual(new Set([...view.workloads()].map(({ uid }) => uid)), new Set(model.workloads.keys()))
  for (const uid of uids) assert.deepEqual(view.workload(uid), model.workloads.get(uid))
  const local = [...model.workloads.values()].filter((candidate) => candidate.node === 'here')
  const pod = { namespace: 'a', serviceAccount: 's', name: 'one' }
  assert.deepEqual(
    view.localWorkload(pod),
    local.find((candidate) => Object.entries(pod).every(([key, value]) => Reflect.get(candidate, key) === value)),
  )
}

test('every index answers as a look at everything does, for the writer and for a reader that stays behind', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(push, fc.boolean()), { maxLength: 12 }), (pushes) => {
      const state = createMeshState({ node: 'here', readers: 1 })
      const reader = openMeshReader(state.memory, 0)
      const model = createModel()
      const behind = createModel()
      let missed: MeshUpdate[] = []
      let moves = true
      state.onPublish((publication) => {
        if (moves) reader.advance(publication)
      })
      for (const [update, readerMoves] of pushes) {
        moves = readerMoves
        state.apply(update)
        model.apply(update)
        missed.push(update)
        if (moves) {
          for (const one of missed) behind.apply(one)
          missed = []
        }
        assertSame(state, model)
        assertSame(reader, behind)
      }
    }),
    { numRuns: 150 },
  )
})
