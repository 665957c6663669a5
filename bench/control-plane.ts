// The control plane in a large mesh: from a change at the API server to the last acknowledgement of the node proxies.
// Processes: this one with a Kubernetes API in memory, `lateen discovery`, and one with all simulated node proxies.
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BenchApi, startBenchApi } from './control-plane/api-server.ts'
import type { Order, Told } from './control-plane/node-proxies.ts'
import {
  type MeshSize,
  meshObjects,
  namespaceOf,
  podObject,
  policyObject,
  strictMesh,
} from './control-plane/objects.ts'

type Row = Record<string, number | string>

interface Scene {
  readonly name: string
  readonly mesh: MeshSize
  readonly proxies: number
  readonly churn: number
  /** Of pods. */
  readonly changesPerSecond: number
}

const policies = 50
const policiesPerSecond = 10
const program = join(import.meta.dirname, '../src/commands/main.ts')

const scenes: readonly Scene[] = [
  {
    name: '10,000 pods, 200 proxies',
    mesh: { services: 1_000, pods: 10_000, nodes: 200 },
    proxies: 200,
    churn: 2_000,
    changesPerSecond: 100,
  },
  {
    name: '100,000 pods, 10 proxies',
    mesh: { services: 10_000, pods: 100_000, nodes: 2_000 },
    proxies: 10,
    churn: 2_000,
    changesPerSecond: 100,
  },
  {
    name: '2,000 pods, 1,000 proxies',
    mesh: { services: 200, pods: 2_000, nodes: 1_000 },
    proxies: 1_000,
    churn: 100,
    changesPerSecond: 5,
  },
]

/** Three rows a scene: the state at rest, connections made again, and the changes. `only` picks scenes by their place. */
export async function run(only: readonly number[] = [0, 1, 2]): Promise<Row[]> {
  const rows: Row[] = []
  for (const [at, scene] of scenes.entries()) if (only.includes(at)) rows.push(...(await play(scene)))
  return rows
}

async function play(scene: Scene): Promise<Row[]> {
  await using api = await startBenchApi()
  for (const object of meshObjects(scene.mesh)) api.put(object)
  await using plane = await startPlane(api)
  const readyMs = await plane.ready
  const idle = plane.usage()
  await using proxies = startProxies()
  const roots = api.secret('istio-system', 'istio-ca-secret')?.['root-cert.pem'] ?? ''
  const connected = await proxies.connect(scene.proxies, plane.address, roots)
  await sleep(1_000)
  const synced = plane.usage()
  const { mesh, churn } = scene
  const step = Math.max(1, Math.floor(mesh.pods / churn))
  const podNames = new Map<string, number>()
  for (let nth = 0; nth < churn; nth += 1) podNames.set(resourceOfPod(nth * step, mesh), nth * step)
  const reconnected = await proxies.reconnect()
  const rejoined = plane.usage()
  const pods = await proxies.timeChanges([...podNames.keys()], scene.changesPerSecond, (name) =>
    api.put(podObject(podNames.get(name) ?? 0, mesh, 1)),
  )
  const churned = plane.usage()
  const policyNames = new Map(Array.from({ length: policies }, (_, nth) => [`team-0/allow-${nth}`, nth]))
  const policy = await proxies.timeChanges([...policyNames.keys()], policiesPerSecond, (name) =>
    api.put(policyObject(policyNames.get(name) ?? 0)),
  )
  const strictName = 'istio-system/istio_converted_static_strict'
  const stalls = plane.watchStalls()
  const lastPod = resourceOfPod(mesh.pods - 1, mesh)
  const strict = await proxies.timeChanges([strictName, lastPod], 100, (name) => {
    if (name === strictName) api.put(strictMesh())
  })
  const longestStall = await stalls()
  const end = plane.usage()
  return [
    {
      benchmark: `control plane: ${scene.name}: at rest`,
      'ready s': round(readyMs / 1000, 1),
      'RSS before clients MB': idle.rssMb,
      'RSS MB': synced.rssMb,
      'first client ms': round(connected.firstSyncMs),
      'all clients ms': round(connected.lastSyncMs),
      resources: connected.resources,
      'MB a client': round(connected.bytes / scene.proxies / 1e6, 2),
    },
    {
      benchmark: `control plane: ${scene.name}: all connect again, holding everything`,
      'all clients ms': round(reconnected.ms),
      'cpu ms a client': round((rejoined.cpuMs - synced.cpuMs) / scene.proxies, 2),
      resources: reconnected.resources,
      'bytes a client': round(reconnected.bytes / scene.proxies),
    },
    {
      benchmark: `control plane: ${scene.name}: changes`,
      'pod p50 ms': round(quantile(pods.ms, 0.5)),
      'pod p99 ms': round(quantile(pods.ms, 0.99)),
      'cpu ms/pod': round((churned.cpuMs - rejoined.cpuMs) / churn, 2),
      'bytes/pod/proxy': round(pods.bytes / churn / scene.proxies),
      'policy p50 ms': round(quantile(policy.ms, 0.5)),
      'policy p99 ms': round(quantile(policy.ms, 0.99)),
      'STRICT ms': round(Math.max(...strict.ms)),
      'longest stall ms': round(longestStall),
      'peak RSS MB': end.peakMb,
    },
  ]
}

function resourceOfPod(at: number, mesh: MeshSize): string {
  return `Kubernetes//Pod/${namespaceOf(at % mesh.services)}/${podObject(at, mesh, 0).metadata.name}`
}

async function startPlane(api: BenchApi) {
  const [grpc, http, monitoring] = [await freePort(), await freePort(), await freePort()]
  const started = performance.now()
  const child = spawn(
    process.execPath,
    [
      ...(process.env.BENCH_NODE_OPTIONS?.split(' ') ?? []),
      program,
      'discovery',
      ...['--kubeconfig', api.kubeconfig, '--secureGRPCAddr', `127.0.0.1:${grpc}`, '--httpAddr', `127.0.0.1:${http}`],
      ...[
        '--monitoringAddr',
        `127.0.0.1:${monitoring}`,
        '--meshConfig',
        join(api.directory, 'none'),
        '--ctrlz_port',
        '0',
      ],
    ],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: {
        ...process.env,
        POD_NAME: 'bench',
        ROOT_CA_DIR: join(api.directory, 'none'),
        PILOT_MAX_REQUESTS_PER_SECOND: '1000',
      },
    },
  )
  const ask = (path: string) =>
    fetch(`http://127.0.0.1:${http}${path}`).then(
      ({ status }) => status,
      () => 0,
    )
  const ready = async (): Promise<number> => {
    while ((await ask('/ready')) !== 200) {
      if (child.exitCode !== null) throw new Error('the control plane ended')
      await sleep(20)
    }
    return performance.now() - started
  }
  return {
    address: `127.0.0.1:${grpc}`,
    ready: ready(),
    usage: () => usageOf(child.pid ?? 0),
    /** The longest time an answer takes until the returned function is called. */
    watchStalls() {
      let longest = 0
      let done = false
      const watching = (async () => {
        while (!done) {
          const asked = performance.now()
          await ask('/ready')
          longest = Math.max(longest, performance.now() - asked)
          await sleep(5)
        }
      })()
      return async () => {
        done = true
        await watching
        return longest
      }
    },
    [Symbol.asyncDispose]: () => end(child),
  }
}

function startProxies() {
  let bytesSeen = 0
  const child = fork(join(import.meta.dirname, 'control-plane/node-proxies.ts'), { serialization: 'advanced' })
  const listeners = new Set<(told: Told) => void>()
  child.on('message', (told) => {
    for (const listener of [...listeners]) listener(told as Told)
  })
  const order = (one: Order): void => void child.send(one)
  const next = <K extends Told['kind']>(kind: K) =>
    new Promise<Extract<Told, { kind: K }>>((resolve, reject) => {
      const ended = (): void => reject(new Error('the node proxies ended'))
      child.once('exit', ended)
      const listener = (told: Told): void => {
        if (told.kind !== kind) return
        listeners.delete(listener)
        child.off('exit', ended)
        resolve(told as Extract<Told, { kind: K }>)
      }
      listeners.add(listener)
    })
  return {
    async connect(count: number, address: string, roots: string) {
      order({ kind: 'connect', count, address, roots })
      return await next('connected')
    },
    async reconnect() {
      order({ kind: 'reconnect' })
      return await next('reconnected')
    },
    /** Makes the changes at a rate a second; the times from each to the last acknowledgement of its resource. */
    async timeChanges(names: readonly string[], rate: number, change: (name: string) => void) {
      const madeAt = new Map<string, bigint>()
      const ms: number[] = []
      let bytes = 0
      const all = Promise.withResolvers<void>()
      const listener = (told: Told): void => {
        if (told.kind !== 'acknowledged') return
        ms.push(Number(told.at - (madeAt.get(told.name) ?? told.at)) / 1e6)
        bytes = told.bytes - bytesBefore
        if (ms.length === names.length) all.resolve()
      }
      order({ kind: 'await', names })
      await sleep(100)
      listeners.add(listener)
      const bytesBefore = bytesSeen
      const started = performance.now()
      for (const [nth, name] of names.entries()) {
        const due = started + (nth * 1000) / rate
        const early = due - performance.now()
        if (early > 1) await sleep(early)
        madeAt.set(name, process.hrtime.bigint())
        change(name)
      }
      await all.promise
      bytesSeen = bytesBefore + bytes
      listeners.delete(listener)
      return { ms: ms.sort((a, b) => a - b), bytes }
    },
    [Symbol.asyncDispose]: () => {
      order({ kind: 'end' })
      return end(child)
    },
  }
}

function usageOf(pid: number): { rssMb: number; peakMb: number; cpuMs: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const megabytes = (field: string): number =>
    Math.round(Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024)
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number)
  return { rssMb: megabytes('VmRSS'), peakMb: megabytes('VmHWM'), cpuMs: ((user ?? 0) + (system ?? 0)) * 10 }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 5_000)
  await ended
  clearTimeout(timer)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  return typeof address === 'object' && address !== null ? address.port : 0
}

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0
}

function round(value: number, digits = 0): number {
  return Number(value.toFixed(digits))
}

if (import.meta.main) {
  const only = process.argv.slice(2).map(Number)
  process.stdout.write(`${JSON.stringify(await run(only.length === 0 ? undefined : only), undefined, 2)}\n`)
}
