// Throughput, latency, connection rate and memory of the node proxy between two namespaces, next to direct TCP, a plain
// relay and a minimal HTTP/2 CONNECT relay on the same machine in the same run. Needs root and iperf3.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

type Row = Record<string, number | string>

/** One row a way of connecting. */
export async function run(): Promise<Row[]> {
  const lab = await createMeshLab({ pods: [client, server, plainClient, plainServer], nodes: ['n1', 'n2'] })
  const directory = mkdtempSync(join(tmpdir(), 'd-bench-'))
  const children: ChildProcess[] = []
  try {
    const proxies = await startMesh(lab)
    const idle = proxies.map((proxy) => proxy.rss())
    for (const pod of [server, plainServer]) {
      children.push(spawnIn(lab, pod.name, ['iperf3', '-s', '-p', String(iperfPort)]))
      await lab.listen(pod.name, echoPort, (socket) => {
        socket.setNoDelay(true)
        socket.on('error', () => undefined)
        socket.pipe(socket)
      })
    }
    const rows: Row[] = []
    const measure = async (way: string, pod: string, ip: string, port: number, echo: number): Promise<Row> => ({
      benchmark: 'hbone',
      way,
      'Gbit/s 1': await iperf(lab, pod, ip, port, 1),
      'Gbit/s 8': await iperf(lab, pod, ip, port, 8),
      ...(await latency(lab, pod, ip, echo)),
      'connections/s': await connectionRate(lab, pod, ip, echo),
    })
    rows.push(await measure('direct TCP', plainClient.name, plainServer.ip, iperfPort, echoPort))
    for (const kind of ['tcp', 'http2'] as const) {
      children.push(...(await startRelays(lab, directory, kind)))
      const way = kind === 'tcp' ? 'plain relay pair' : 'minimal HTTP/2 relay pair'
      rows.push(await measure(way, plainClient.name, '127.0.0.1', relayPort, relayPort + 1))
      for (const child of children.splice(2)) await stop(child)
    }
    const mesh = await measure('node proxy pair', client.name, server.ip, iperfPort, echoPort)
    const busy = await rssAtConnections(lab, proxies, 1000)
    rows.push({ ...mesh, 'RSS idle MB': megabytes(idle), 'RSS 1000 conns MB': megabytes(busy) })
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
  return Promise.all([lab.startProxy('n1'), lab.startProxy('n2')])
}

const spawnIn = (lab: MeshLab, name: string, command: readonly string[]): ChildProcess =>
  spawn('ip', ['netns', 'exec', lab.namespaceName(name), ...command], { stdio: ['ignore', 'pipe', 'inherit'] })

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/** Two relays of one kind: in the client's namespace towards the server's, and in the server's towards its ports. */
async function startRelays(lab: MeshLab, directory: string, kind: 'tcp' | 'http2'): Promise<ChildProcess[]> {
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

async function iperf(lab: MeshLab, pod: string, ip: string, port: number, parallel: number): Promise<number> {
  const args = ['iperf3', '-c', ip, '-p', String(port), '-P', String(parallel), '-t', String(seconds), '-J']
  const { stdout } = await promisify(execFile)('ip', ['netns', 'exec', lab.namespaceName(pod), ...args], {
    timeout: (seconds + 20) * 1000,
    maxBuffer: 64 * 1024 * 1024,
  })
  const report = JSON.parse(stdout) as { end: { sum_received: { bits_per_second: number } } }
  return Math.round(report.end.sum_received.bits_per_second / 1e7) / 100
}

async function latency(lab: MeshLab, pod: string, ip: string, port: number): Promise<Row> {
  const socket = await lab.connect(pod, { ip, port })
  socket.setNoDelay(true)
  socket.resume()
  const message = Buffer.alloc(1024, 1)
  const times: number[] = []
  for (let round = 0; round < 3000; round += 1) {
    const start = performance.now()
    let missing = message.length
    const complete = new Promise<void>((resolve) => {
      const take = (chunk: Buffer) => {
        missing -= chunk.length
        if (missing > 0) return
        socket.off('data', take)
        resolve()
      }
      socket.on('data', take)
    })
    socket.write(message)
    await complete
    if (round >= 500) times.push(performance.now() - start)
  }
  socket.destroy()
  times.sort((a, b) => a - b)
  const at = (part: number) => Math.round((times[Math.floor(part * times.length)] ?? 0) * 1000)
  return { 'p50 µs': at(0.5), 'p99 µs': at(0.99) }
}

/** Connect, one byte there and back, close; 16 at a time. */
async function connectionRate(lab: MeshLab, pod: string, ip: string, port: number): Promise<number> {
  let done = 0
  const until = performance.now() + 3000
  const worker = async () => {
    while (performance.now() < until) {
      const socket = await lab.connect(pod, { ip, port })
      const answered = once(socket, 'data')
      socket.resume()
      socket.write('x')
      await answered
      socket.end()
      await once(socket, 'close')
      done += 1
    }
  }
  await Promise.all(Array.from({ length: 16 }, worker))
  return Math.round(done / 3)
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
