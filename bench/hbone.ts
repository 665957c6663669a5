// Throughput, latency, connection rate, processor time and memory of the node proxy between two namespaces, next to direct
// TCP, a plain relay, a relay over TLS and a minimal HTTP/2 CONNECT relay on the same machine in the same run. Needs root and iperf3.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createMeshLab, type LabProxy, type MeshLab } from '../test/support/mesh-lab.ts'
import { createTestPki } from '../test/support/test-pki.ts'

const client = { name: 'client', ip: '10.77.2.1', node: 'n1' }
const server = { name: 'server', ip: '10.77.2.2', node: 'n2' }
/** The same hosts outside the mesh: for direct TCP and for the other relays. */
const plainClient = { name: 'plain-client', ip: '10.77.2.3' }
const plainServer = { name: 'plain-server', ip: '10.77.2.4' }
const iperfPort = 5201
const relayPort = 5301
const echoPort = 8080
const seconds = 5
/** After it, an idle proxy has looked twice whether there is memory to give back. */
const restMs = 21_000

type Row = Record<string, number | string>

/** From where to where a way of connecting leads. */
interface From {
  readonly pod: string
  readonly ip: string
  readonly iperf: number
  readonly echo: number
}

const relays = { tcp: 'plain relay pair', tls: 'TLS relay pair', http2: 'minimal HTTP/2 relay pair' }

/** One row a way of connecting. */
export async function run(): Promise<Row[]> {
  const lab = await createMeshLab({ pods: [client, server, plainClient, plainServer], nodes: ['n1', 'n2'] })
  const directory = mkdtempSync(join(tmpdir(), 'd-bench-'))
  const children: ChildProcess[] = []
  try {
    const proxies = await startMesh(lab)
    const idle = proxies.map((proxy) => proxy.rss())
    for (const pod of [client, server, plainClient, plainServer]) {
      // Connections that are over would use up the ports of the next ones within one run, and then the kernel searches longer and longer.
      lab.exec(pod.name, 'sysctl', '-qw', 'net.ipv4.tcp_max_tw_buckets=500')
    }
    for (const pod of [server, plainServer]) {
      const iperfServer = spawnIn(lab, pod.name, ['iperf3', '-s', '-p', String(iperfPort), '--forceflush'])
      children.push(iperfServer)
      if (iperfServer.stdout !== null) await once(iperfServer.stdout, 'data')
      iperfServer.stdout?.resume()
      await lab.listen(pod.name, echoPort, (socket) => {
        socket.setNoDelay(true)
        socket.on('error', () => undefined)
        socket.pipe(socket)
      })
    }
    const rows: Row[] = []
    const measure = async (way: string, from: From, pids: readonly number[]): Promise<Row> => {
      const forward: Throughput[] = []
      for (const parallel of [1, 2, 8]) forward.push(await iperf(lab, from, parallel, pids))
      const back: Throughput[] = []
      for (const parallel of [1, 2, 8]) back.push(await iperf(lab, from, parallel, pids, '-R'))
      const row: Row = {
        benchmark: 'hbone',
        way,
        'Gbit/s, 1 / 2 / 8': forward.map(({ gigabits }) => gigabits).join(' / '),
        'back, 1 / 2 / 8': back.map(({ gigabits }) => gigabits).join(' / '),
        'CPU s/GB, 1 / 2 / 8': forward.map(({ processorSeconds }) => processorSeconds).join(' / '),
      }
      for (const connections of [1, 64]) {
        for (const bytes of [1, 1024, 16_384]) {
          const { p50, p99, perSecond } = await latency(lab, from, bytes, connections)
          row[`µs ${bytes} B ×${connections}`] = `${p50} / ${p99}`
          if (bytes === 1024 && connections === 1) row['1 KiB round trips/s'] = perSecond
        }
      }
      row['connections/s'] = await connectionRate(lab, from)
      return row
    }
    const direct = { pod: plainClient.name, ip: plainServer.ip, iperf: iperfPort, echo: echoPort }
    rows.push(await measure('direct TCP', direct, []))
    const near = { ...direct, ip: '127.0.0.1', iperf: relayPort, echo: relayPort + 1 }
    for (const [kind, way] of Object.entries(relays)) {
      children.push(...(await startRelays(lab, directory, kind)))
      rows.push(await measure(way, near, pidsOf(children.slice(2))))
      for (const child of children.splice(2)) await stop(child)
    }
    const captured = { ...direct, pod: client.name }
    rows.push(
      await measure('near node proxy, TCP', captured, pidsOf(proxies.slice(0, 1).map((proxy) => proxy.process))),
    )
    const meshed = { pod: client.name, ip: server.ip, iperf: iperfPort, echo: echoPort }
    const mesh = await measure('node proxy pair', meshed, pidsOf(proxies.map((proxy) => proxy.process)))
    const used = proxies.map((proxy) => proxy.rss())
    await delay(restMs)
    const rested = proxies.map((proxy) => proxy.rss())
    const busy = await rssAtConnections(lab, proxies, 1000)
    for (const proxy of proxies) await proxy.stop()
    const fresh = await startProxies(lab, {})
    await delay(restMs)
    const few = fresh.map((proxy) => proxy.rss())
    const many = await rssWithWorkloads(lab, fresh, 10_000)
    for (const proxy of fresh) await proxy.stop()
    await startProxies(lab, { POOL_MAX_STREAMS_PER_CONNECTION: '1', POOL_UNUSED_RELEASE_TIMEOUT: '1ms' })
    rows.push({
      ...mesh,
      'fresh tunnel/s': await connectionRate(lab, meshed),
      'RSS MB started': megabytes(idle),
      'after load': megabytes(used),
      rested: megabytes(rested),
      '1000 connections': megabytes(busy),
      'idle, few workloads': megabytes(few),
      'idle, 10000 workloads': megabytes(many),
    })
    return rows
  } finally {
    for (const child of children) await stop(child)
    await lab[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true })
  }
}

async function startMesh(lab: MeshLab): Promise<LabProxy[]> {
  for (const pod of [client, server]) {
    lab.controlPlane.setWorkload({
      uid: `c1//Pod/default/${pod.name}`,
      name: pod.name,
      namespace: 'default',
      serviceAccount: pod.name,
      node: pod.node,
      tunnelProtocol: 1,
      addresses: [Uint8Array.from(pod.ip.split('.').map(Number))],
    })
  }
  return startProxies(lab, {})
}

const startProxies = (lab: MeshLab, env: Record<string, string>): Promise<LabProxy[]> =>
  Promise.all([lab.startProxy('n1', env), lab.startProxy('n2', env)])

const pidsOf = (children: readonly ChildProcess[]) => children.flatMap(({ pid }) => (pid === undefined ? [] : [pid]))

const spawnIn = (lab: MeshLab, name: string, command: readonly string[]): ChildProcess =>
  spawn('ip', ['netns', 'exec', lab.namespaceName(name), ...command], { stdio: ['ignore', 'pipe', 'inherit'] })

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/** Two relays of one kind: in the client's namespace towards the server's, and in the server's towards its ports. */
async function startRelays(lab: MeshLab, directory: string, kind: string): Promise<ChildProcess[]> {
  const pki = await createTestPki()
  const file = async (name: string) => {
    const { privateKey, chain } = await pki.issue('relay')
    const path = join(directory, `${kind}-${name}.json`)
    writeFileSync(path, JSON.stringify({ key: privateKey, cert: chain, ca: pki.roots }))
    return path
  }
  const script = join(import.meta.dirname, 'minimal-relay.ts')
  const [near, far] = [await file('near'), await file('far')]
  const pairs = `${relayPort}:${iperfPort},${relayPort + 1}:${echoPort}`
  const children = [
    spawnIn(lab, plainServer.name, [process.execPath, script, kind, 'far', far, pairs]),
    spawnIn(lab, plainClient.name, [process.execPath, script, kind, 'near', near, pairs, plainServer.ip]),
  ]
  await Promise.all(children.map((child) => child.stdout && once(child.stdout, 'data')))
  return children
}

interface Throughput {
  readonly gigabits: number
  readonly processorSeconds: number
}

async function iperf(
  lab: MeshLab,
  { pod, ip, iperf: port }: From,
  parallel: number,
  pids: readonly number[],
  ...more: readonly string[]
): Promise<Throughput> {
  const args = ['iperf3', '-c', ip, '-p', String(port), '-P', String(parallel), '-t', String(seconds), '-J', ...more]
  for (;;) {
    const before = processorSeconds(pids)
    const { stdout } = await promisify(execFile)('ip', ['netns', 'exec', lab.namespaceName(pod), ...args], {
      timeout: (seconds + 20) * 1000,
      maxBuffer: 64 * 1024 * 1024,
    })
    const used = processorSeconds(pids) - before
    const report = JSON.parse(stdout) as IperfReport
    if (report.end.sum_received !== undefined) {
      const { bits_per_second, bytes } = report.end.sum_received
      return { gigabits: rounded(bits_per_second / 1e9), processorSeconds: rounded(used / (bytes / 1e9)) }
    }
    // The server ends the run before some moments after its client.
    if (!report.error?.includes('busy')) throw new Error(`iperf3: ${report.error}`)
    await delay(200)
  }
}

interface IperfReport {
  readonly end: { readonly sum_received?: { readonly bits_per_second: number; readonly bytes: number } }
  readonly error?: string
}

/** Of both halves together. */
function processorSeconds(pids: readonly number[]): number {
  const ticks = pids.map((pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')
    return Number(fields[13]) + Number(fields[14])
  })
  return ticks.reduce((sum, one) => sum + one, 0) / 100
}

const rounded = (value: number) => Math.round(value * 100) / 100

/** Request and response of the same size over open connections; microseconds. */
async function latency(
  lab: MeshLab,
  { pod, ip, echo }: From,
  bytes: number,
  connections: number,
): Promise<{ p50: number; p99: number; perSecond: number }> {
  // The first third lets each process compile what it runs.
  const rounds = Math.ceil(12_000 / connections)
  const times: number[] = []
  const exchangeAll = async () => {
    const socket = await lab.connect(pod, { ip, port: echo })
    socket.setNoDelay(true)
    socket.resume()
    const message = Buffer.alloc(bytes, 1)
    for (let round = 0; round < rounds; round += 1) {
      const start = performance.now()
      await exchange(socket, message)
      if (round >= rounds / 3) times.push(performance.now() - start)
    }
    socket.destroy()
  }
  await Promise.all(Array.from({ length: connections }, exchangeAll))
  const perSecond = Math.round((connections * times.length * 1000) / times.reduce((sum, one) => sum + one, 0))
  times.sort((a, b) => a - b)
  const at = (part: number) => Math.round((times[Math.floor(part * times.length)] ?? 0) * 1000)
  return { p50: at(0.5), p99: at(0.99), perSecond }
}

function exchange(socket: Socket, message: Buffer): Promise<void> {
  let missing = message.length
  return new Promise((resolve) => {
    const take = (chunk: Buffer) => {
      missing -= chunk.length
      if (missing > 0) return
      socket.off('data', take)
      resolve()
    }
    socket.on('data', take)
    socket.write(message)
  })
}

/** Connect, one byte there and back, close; 16 at a time. */
async function connectionRate(lab: MeshLab, { pod, ip, echo }: From): Promise<number> {
  let done = 0
  const until = performance.now() + 3000
  const worker = async () => {
    while (performance.now() < until) {
      const socket = await lab.connect(pod, { ip, port: echo })
      socket.resume()
      await exchange(socket, Buffer.of(1))
      socket.end()
      await once(socket, 'close')
      done += 1
    }
  }
  await Promise.all(Array.from({ length: 16 }, worker))
  return Math.round(done / 3)
}

/** The mesh gets many more workloads; measured once what taking them in needed for a moment is given back. */
async function rssWithWorkloads(lab: MeshLab, proxies: readonly LabProxy[], count: number): Promise<number[]> {
  for (let index = 0; index < count; index += 1) {
    lab.controlPlane.setWorkload({
      uid: `c1//Pod/default/w${index}`,
      name: `w${index}`,
      namespace: 'default',
      serviceAccount: `sa${index % 100}`,
      node: `far${index % 50}`,
      tunnelProtocol: 1,
      addresses: [Uint8Array.of(10, 99, index >> 8, index & 0xff)],
    })
  }
  await delay(restMs)
  const rss = proxies.map((proxy) => proxy.rss())
  // Asked afterwards: writing the answer takes more memory than the workloads do.
  for (const node of ['n1', 'n2']) {
    const dump = await lab.run(node, 'curl', '-s', 'http://127.0.0.1:15000/config_dump')
    if (!dump.includes(`"w${count - 1}"`)) throw new Error(`the proxy of ${node} has not got all workloads`)
  }
  return rss
}

async function rssAtConnections(lab: MeshLab, proxies: readonly LabProxy[], count: number): Promise<number[]> {
  const sockets = await Promise.all(
    Array.from({ length: count }, () => lab.connect(client.name, { ip: server.ip, port: echoPort })),
  )
  for (const socket of sockets) {
    const answered = once(socket, 'data')
    socket.resume()
    socket.write('x')
    await answered
  }
  const rss = proxies.map((proxy) => proxy.rss())
  for (const socket of sockets) socket.destroy()
  return rss
}

const megabytes = (bytes: readonly number[]) => bytes.map((one) => Math.round(one / 1e6)).join(' / ')

if (process.argv[1] === import.meta.filename) {
  const rows = await run()
  process.stdout.write(`${table(rows)}\n`)
}

function table(rows: readonly Row[]): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const cells = [columns, ...rows.map((row) => columns.map((column) => String(row[column] ?? '')))]
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => row[index]?.length ?? 0)))
  return cells.map((row) => row.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join('  ')).join('\n')
}
