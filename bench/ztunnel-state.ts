// The node proxy's state: memory of a mesh, pushes, look-ups and decisions. Figures of one thread, but for the last rows of the table.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { authorize, routeOutbound } from '../src/ztunnel/decisions/index.ts'
import { createDeltaReceiver, createMeshState, type MeshState, serviceKey } from '../src/ztunnel/state/index.ts'
import { addressUpdate, ipOf, policyOf, serviceOf, workloadOf } from './ztunnel-state/content.ts'
import type { Measured } from './ztunnel-state/process.ts'

interface Row {
  readonly scenario: string
  readonly figure: number
  readonly unit: string
}

const budgetMs = 400

export async function run(): Promise<readonly Row[]> {
  return [
    insertAndRemove(),
    ...[10, 1000, 10_000].flatMap((count) => [balance('basic', count), balance('locality', count)]),
    balanceAfterChange(1000),
    balanceAfterChange(10_000),
    ...[1, 10, 100, 1000, 10_000].flatMap((count) => [
      match('exact', 'hit', count),
      match('exact', 'miss', count),
      match('cidr', 'hit', count),
      match('cidr', 'miss', count),
    ]),
    ...[250, 1000, 4000].flatMap((count) => [
      insert('shared', count),
      insert('distinct', count),
      insert('no', count),
      insert('batched', count),
    ]),
    rbac(),
    reconnect(),
    ...(await processes()),
  ]
}

/** How often in a second, measured until the time is used up. `work` does it once. */
function rate(scenario: string, unit: string, work: () => void, times = 1): Row {
  work()
  let rounds = 0
  const startedAt = performance.now()
  while (performance.now() - startedAt < budgetMs) {
    work()
    rounds += 1
  }
  const seconds = (performance.now() - startedAt) / 1000
  return { scenario, figure: Math.round((rounds * times) / seconds), unit }
}

function insertAndRemove(): Row {
  const state = createMeshState()
  const service = serviceOf(0)
  state.apply({ services: [service] })
  const services = new Map([[serviceKey(service), new Map([[80, 8080]])]])
  const workloads = Array.from({ length: 1000 }, (_, index) => workloadOf(index, { services }))
  const once = () => {
    for (const one of workloads) state.apply({ workloads: [one] })
    for (const one of workloads) state.apply({ removedAddresses: [one.uid] })
  }
  once()
  const startedAt = performance.now()
  let runs = 0
  while (performance.now() - startedAt < 2 * budgetMs) {
    once()
    runs += 1
  }
  return { scenario: 'xds/insert-remove', figure: round((performance.now() - startedAt) / runs), unit: 'ms a run' }
}

function meshWithEndpoints(kind: 'basic' | 'locality', count: number): MeshState {
  const state = createMeshState()
  const service = serviceOf(0, {
    ports: new Map([[80, 80]]),
    ...(kind === 'basic'
      ? {}
      : {
          loadBalancer: {
            mode: 'Failover',
            routingPreferences: ['Network', 'Region', 'Zone', 'Subzone'],
            healthPolicy: 'OnlyHealthy',
          },
        }),
  })
  const workloads = Array.from({ length: count }, (_, index) =>
    workloadOf(index, { services: new Map([[serviceKey(service), new Map([[80, 8000 + (index % 100)]])]]) }),
  )
  state.apply({ services: [service], workloads: [...workloads, workloadOf(999_999)] })
  return state
}

function balance(kind: 'basic' | 'locality', count: number): Row {
  const state = meshWithEndpoints(kind, count)
  const source = state.workload(workloadOf(999_999).uid)
  if (source === undefined) throw new Error('the client is not there')
  const request = { source, from: { ip: ipOf(999_999), port: 1 }, to: { ip: ipOf(0, 20), port: 80 } }
  const options = { network: '', hbonePort: 15008, illegalPorts: new Set<number>(), random: Math.random }
  return rate(`load_balance/${kind}-${count}`, 'picks/s', () => {
    const decision = routeOutbound(state, request, options)
    if (decision.kind !== 'hbone') throw new Error(`not routed: ${JSON.stringify(decision)}`)
  })
}

/** The first pick after one of the endpoints has changed. */
function balanceAfterChange(count: number): Row {
  const state = meshWithEndpoints('basic', count)
  const source = state.workload(workloadOf(999_999).uid)
  const changing = state.workload(workloadOf(7).uid)
  if (source === undefined || changing === undefined) throw new Error('the workloads are not there')
  const request = { source, from: { ip: ipOf(999_999), port: 1 }, to: { ip: ipOf(0, 20), port: 80 } }
  const options = { network: '', hbonePort: 15008, illegalPorts: new Set<number>(), random: Math.random }
  routeOutbound(state, request, options)
  let spent = 0
  let rounds = 0
  for (; spent < budgetMs; rounds += 1) {
    state.apply({ workloads: [{ ...changing, capacity: 1 + (rounds % 5) }] })
    const startedAt = performance.now()
    routeOutbound(state, request, options)
    spent += performance.now() - startedAt
  }
  return { scenario: `load_balance/after-change-${count}`, figure: round((spent / rounds) * 1000), unit: 'µs' }
}

function match(by: 'exact' | 'cidr', wanted: 'hit' | 'miss', count: number): Row {
  const state = createMeshState()
  state.apply({
    services: Array.from({ length: count }, (_, index) =>
      by === 'exact'
        ? serviceOf(index)
        : serviceOf(index, { vips: [], cidrVips: [{ network: '', cidr: `${ipOf(index * 256, 30)}/24` }] }),
    ),
  })
  const hits = Array.from({ length: 64 }, (_, index) => (index * 157) % count)
  const ips =
    wanted === 'miss'
      ? hits.map((index) => ipOf(index, 99))
      : hits.map((index) => (by === 'exact' ? ipOf(index, 20) : ipOf(index * 256 + 7, 30)))
  return rate(
    `vip_match/${by}-${wanted}-${count}`,
    'lookups/s',
    () => {
      for (const ip of ips) {
        if ((state.serviceByVip('', ip, 'default') === undefined) !== (wanted === 'miss')) throw new Error(ip)
      }
    },
    ips.length,
  )
}

function insert(kind: 'shared' | 'distinct' | 'no' | 'batched', count: number): Row {
  const services = Array.from({ length: kind === 'distinct' ? count : 1 }, (_, index) => serviceOf(index))
  const workloads = Array.from({ length: count }, (_, index) => {
    const service = services[kind === 'distinct' ? index : 0]
    const ports = new Map([[80, 8080]])
    return workloadOf(
      index,
      kind === 'no' || service === undefined ? {} : { services: new Map([[serviceKey(service), ports]]) },
    )
  })
  let spent = 0
  let runs = 0
  while (spent < budgetMs) {
    const state = createMeshState()
    state.apply({ services })
    const startedAt = performance.now()
    if (kind === 'batched') state.apply({ workloads })
    else for (const one of workloads) state.apply({ workloads: [one] })
    spent += performance.now() - startedAt
    runs += 1
  }
  return {
    scenario: `endpoint_insert/${kind}-service/${count}`,
    figure: Math.round((runs * count) / (spent / 1000)),
    unit: 'inserts/s',
  }
}

function rbac(): Row {
  const state = createMeshState()
  state.apply({ workloads: [workloadOf(0)], policies: Array.from({ length: 10_000 }, (_, index) => policyOf(index)) })
  const destinationWorkload = state.workload(workloadOf(0).uid)
  if (destinationWorkload === undefined) throw new Error('the workload is not there')
  const request = {
    destinationWorkload,
    source: { ip: '10.1.2.3', port: 1 },
    destination: { ip: '10.0.0.0', port: 80 },
    identity: { trustDomain: 'cluster.local', namespace: 'default', serviceAccount: 'default' },
  }
  return rate('rbac', 'checks/s', () => {
    if (!authorize(state, request).allowed) throw new Error('denied')
  })
}

/** A control plane that sends everything anew. */
function reconnect(): Row {
  const state = createMeshState()
  const receive = createDeltaReceiver(state)
  const update = addressUpdate(10_000, 1000)
  receive(update)
  const startedAt = performance.now()
  receive(update)
  return { scenario: 'xds/10000-again', figure: round(performance.now() - startedAt), unit: 'ms' }
}

/** In processes of their own, with two threads that read. */
async function processes(): Promise<Row[]> {
  const measure = async (...args: readonly string[]): Promise<Measured> => {
    const script = join(import.meta.dirname, 'ztunnel-state/process.ts')
    const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', script, ...args])
    return JSON.parse(stdout) as Measured
  }
  const mesh = await measure('10000', '1000', '2')
  const large = await measure('370000', '1000', '2', 'whole')
  return [
    { scenario: 'memory/10000-workloads-1000-services', figure: round(mesh.grownMegabytes), unit: 'MB resident' },
    { scenario: 'memory/shared', figure: round(mesh.sharedMegabytes), unit: 'MB' },
    { scenario: 'push/size', figure: round(large.pushMegabytes), unit: 'MB' },
    { scenario: 'push/apply', figure: round(large.applyMs), unit: 'ms' },
    { scenario: 'push/longest-stall-of-a-reader', figure: round(large.longestStallMs), unit: 'ms' },
    { scenario: 'push/longest-stall-while-main-counts', figure: round(large.comparedStallMs), unit: 'ms' },
    { scenario: 'push/memory', figure: round(large.grownMegabytes), unit: 'MB resident' },
    { scenario: 'push/memory-shared', figure: round(large.sharedMegabytes), unit: 'MB' },
  ]
}

const round = (value: number): number => Math.round(value * 10) / 10

if (process.argv[1] === import.meta.filename) {
  for (const { scenario, figure, unit } of await run()) {
    process.stdout.write(`${scenario.padEnd(44)}${String(figure).padStart(12)} ${unit}\n`)
  }
}
