// A small mesh on one machine for tests: pods and nodes as network namespaces, a control plane in this process, node proxies as processes.
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createSocket, openNetworkNamespace } from '../../src/linux/index.ts'
import { type AgentConnection, type AgentPod, listenNodeAgent, type NodeAgent } from './node-agent.ts'
import { startControlPlane, type TestControlPlane } from './test-control-plane.ts'

export interface LabPod {
  readonly name: string
  readonly ip: string
  /** The node whose proxy serves it; absent: outside the mesh. */
  readonly node?: string
}

export interface MeshLab extends AsyncDisposable {
  readonly controlPlane: TestControlPlane
  /** The path of a pod's or node's network namespace. */
  namespacePath(name: string): string
  /** Name for `ip netns exec`. */
  namespaceName(name: string): string
  /** For files of the test; gone with the lab. */
  readonly directory: string
  /** Starts a node proxy in a pod's or node's namespace; its pods are not waited for. */
  launch(name: string, env: LabEnvironment, options?: LaunchOptions): LabProxy
  /** Takes a further connection of a node's proxy and hands it the node's pods. */
  serveProxy(node: string): Promise<AgentConnection>
  /** Starts the proxy of a node and waits until its pods are served. */
  startProxy(node: string, env?: LabEnvironment, options?: LaunchOptions): Promise<LabProxy>
  /** A connection as an application of the pod makes it. Resolves when it is connected. */
  connect(pod: string, to: { ip: string; port: number }): Promise<net.Socket>
  /** The agent's end of the proxy that was served last. */
  agentOf(node: string): AgentConnection
  /** A server as an application of the pod runs it. */
  listen(pod: string, port: number, onSocket: (socket: net.Socket) => void, ip?: string): Promise<net.Server>
  exec(name: string, command: string, ...args: string[]): string
  /** As exec, while this process goes on: the control plane is in it. Rejects when the command fails, or after ten seconds. */
  run(name: string, command: string, ...args: string[]): Promise<string>
}

/** Besides what every proxy of the lab gets, of which it takes away what is undefined. */
export type LabEnvironment = Readonly<Record<string, string | undefined>>

export interface LaunchOptions {
  /** Where the process runs. */
  readonly directory?: string
  /** A file for the standard output, which is then not among what `log` gives. */
  readonly stdout?: string
  /** Capabilities that the process does not have, as setpriv names them: `net_admin`. */
  readonly without?: readonly string[]
}

/** Every pod and node has an IPv6 address beside its IPv4 address 10.77.a.b: fd77::a:b. */
export function ipv6Of(address: string): string {
  const [, , third, fourth] = address.split('.')
  return `fd77::${third}:${fourth}`
}

export interface LabProxy {
  readonly process: ChildProcess
  readonly pid: number
  log(): string
  /** Resolves when a log line matches. */
  logged(pattern: RegExp): Promise<string>
  /** Resident bytes. */
  rss(): number
  stop(signal?: NodeJS.Signals): Promise<number | null>
  /** Resolves with the exit status when it has ended by itself. */
  stopped(): Promise<number | null>
}

export const canRunLab =
  process.platform === 'linux' && process.getuid?.() === 0 ? false : 'network namespaces need root'

const fabricIp = '10.77.0.1'
const root = join(import.meta.dirname, '../..')

export async function createMeshLab(options: {
  readonly pods: readonly LabPod[]
  nodes: readonly string[]
  /** The control plane names addresses only to those who ask for them. */
  readonly onDemand?: boolean
}): Promise<MeshLab> {
  const prefix = `d${randomBytes(3).toString('hex')}`
  const directory = mkdtempSync(join(tmpdir(), `${prefix}-`))
  await using stack = new AsyncDisposableStack()
  stack.defer(() => rmSync(directory, { recursive: true }))
  const ip = (...args: string[]) => execFileSync('ip', args, { stdio: 'pipe' })
  const namespaceName = (name: string) => `${prefix}-${name}`
  const namespacePath = (name: string) => `/run/netns/${namespaceName(name)}`
  const exec = (name: string, ...command: string[]) =>
    execFileSync('ip', ['netns', 'exec', namespaceName(name), ...command], { stdio: 'pipe', encoding: 'utf8' })

  const addNamespace = (name: string) => {
    ip('netns', 'add', namespaceName(name))
    stack.defer(() => void ip('netns', 'del', namespaceName(name)))
    ip('-n', namespaceName(name), 'link', 'set', 'lo', 'up')
  }
  addNamespace('fabric')
  // Without an address of its own it takes the lowest of its ports, and another when that port goes: nobody would find it for a minute.
  ip('-n', namespaceName('fabric'), 'link', 'add', 'br0', 'address', '02:00:00:00:00:01', 'type', 'bridge')
  ip('-n', namespaceName('fabric'), 'addr', 'add', `${fabricIp}/16`, 'dev', 'br0')
  ip('-n', namespaceName('fabric'), 'addr', 'add', `${ipv6Of(fabricIp)}/64`, 'dev', 'br0', 'nodad')
  ip('-n', namespaceName('fabric'), 'link', 'set', 'br0', 'up')
  const attach = (name: string, address: string) => {
    addNamespace(name)
    const port = `p${randomBytes(4).toString('hex')}`
    ip(
      'link',
      'add',
      'eth0',
      'netns',
      namespaceName(name),
      'type',
      'veth',
      'peer',
      'name',
      port,
      'netns',
      namespaceName('fabric'),
    )
    ip('-n', namespaceName('fabric'), 'link', 'set', port, 'master', 'br0', 'up')
    ip('-n', namespaceName(name), 'addr', 'add', `${address}/16`, 'dev', 'eth0')
    ip('-n', namespaceName(name), 'addr', 'add', `${ipv6Of(address)}/64`, 'dev', 'eth0', 'nodad')
    ip('-n', namespaceName(name), 'link', 'set', 'eth0', 'up')
    ip('-n', namespaceName(name), 'route', 'add', 'default', 'via', fabricIp)
    ip('-n', namespaceName(name), '-6', 'route', 'add', 'default', 'via', ipv6Of(fabricIp))
  }
  for (const [index, node] of options.nodes.entries()) attach(node, `10.77.1.${index + 1}`)
  for (const pod of options.pods) {
    attach(pod.name, pod.ip)
    if (pod.node !== undefined) redirect(namespaceName(pod.name))
  }

  const controlPlane = stack.use(await startControlPlane(namespacePath('fabric'), fabricIp, options))
  writeFileSync(join(directory, 'root-cert.pem'), controlPlane.roots)
  const agents = new Map<string, NodeAgent>()
  for (const node of options.nodes) {
    const agent = stack.use(listenNodeAgent(join(directory, `${node}.sock`)))
    agents.set(node, agent)
  }
  const proxies: LabProxy[] = []
  stack.defer(async () => {
    await Promise.all(proxies.map((proxy) => proxy.stop('SIGKILL')))
  })
  const served = new Map<string, AgentConnection>()
  const owned = stack.move()

  function start(name: string, env: LabEnvironment, launched: LaunchOptions = {}): LabProxy {
    const settings = {
      XDS_ADDRESS: controlPlane.address,
      CA_ADDRESS: controlPlane.address,
      XDS_ROOT_CA: join(directory, 'root-cert.pem'),
      CA_ROOT_CA: join(directory, 'root-cert.pem'),
      AUTH_TOKEN: 'test-token',
      LOG_FORMAT: 'plain',
      ...env,
    }
    const proxy = launch(namespaceName(name), settings, launched)
    proxies.push(proxy)
    return proxy
  }

  async function serve(node: string): Promise<AgentConnection> {
    const agent = agents.get(node)
    if (agent === undefined) throw new Error(`no node ${node}`)
    const connection = await agent.serve(options.pods.filter((pod) => pod.node === node).map(agentPodOf))
    served.set(node, connection)
    return connection
  }

  const agentPodOf = (pod: LabPod): AgentPod => ({
    uid: `uid-${pod.name}`,
    namespacePath: namespacePath(pod.name),
    pod: { name: pod.name, namespace: 'default', serviceAccount: pod.name },
  })

  return {
    controlPlane,
    namespaceName,
    namespacePath,
    exec,
    async run(name, ...command) {
      const all = ['netns', 'exec', namespaceName(name), ...command]
      return (await promisify(execFile)('ip', all, { timeout: 10_000, maxBuffer: 64 * 1024 * 1024 })).stdout
    },
    directory,
    launch: start,
    serveProxy: serve,
    agentOf(node) {
      const connection = served.get(node)
      if (connection === undefined) throw new Error(`no proxy of ${node} is served`)
      return connection
    },
    async startProxy(node, env = {}, launched = {}) {
      const proxy = start(node, { NODE_NAME: node, INPOD_UDS: join(directory, `${node}.sock`), ...env }, launched)
      const ended = once(proxy.process, 'exit').then(() => {
        throw new Error(`the proxy ended: ${proxy.log().slice(-2000)}`)
      })
      ended.catch(() => undefined)
      await Promise.race([serve(node), ended])
      return proxy
    },
    async connect(pod, to) {
      using namespace = openNetworkNamespace(namespacePath(pod))
      const { fd } = createSocket({ family: to.ip.includes(':') ? 6 : 4, type: 'stream' }, namespace)
      const config = Object.assign({ fd, allowHalfOpen: true }, { manualStart: true })
      const socket = new net.Socket(config)
      socket.pause()
      socket.connect(to.port, to.ip)
      await once(socket, 'connect')
      return socket
    },
    async listen(pod, port, onSocket, ip = '0.0.0.0') {
      using namespace = openNetworkNamespace(namespacePath(pod))
      const family = ip.includes(':') ? 6 : 4
      const { fd } = createSocket({ family, type: 'stream', reuseAddress: true, bind: { ip, port } }, namespace)
      const server = net.createServer({ allowHalfOpen: true }, onSocket)
      server.listen({ fd, backlog: 1024 })
      await once(server, 'listening')
      owned.defer(() => void server.close())
      return server
    },
    async [Symbol.asyncDispose]() {
      await owned.disposeAsync()
    },
  }
}

/** What the node agent installs in a pod. */
function redirect(namespace: string): void {
  const rules = `${rulesOf('ip', '127.0.0.1')}${rulesOf('ip6', '::1')}`
  execFileSync('ip', ['netns', 'exec', namespace, 'nft', '-f', '-'], {
    input: rules,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  for (const [family, everywhere] of [
    ['-4', '0.0.0.0/0'],
    ['-6', '::/0'],
  ] as const) {
    const own = ['-n', namespace, family]
    execFileSync('ip', [...own, 'rule', 'add', 'fwmark', '0x111/0xfff', 'pref', '32764', 'lookup', '100'])
    execFileSync('ip', [...own, 'route', 'add', 'local', everywhere, 'dev', 'lo', 'table', '100'])
  }
}

function rulesOf(family: 'ip' | 'ip6', loopback: string): string {
  return `
table ${family} mesh {
  chain mangle_in { type filter hook prerouting priority mangle
    meta mark & 0xfff == 0x539 ct mark set ct mark & 0xfffff000 | 0x111
  }
  chain mangle_out { type route hook output priority mangle
    ct mark & 0xfff == 0x111 meta mark set ct mark
  }
  chain nat_in { type nat hook prerouting priority dstnat
    ${family} daddr != ${loopback} tcp dport != 15008 meta mark & 0xfff != 0x539 redirect to :15006
  }
  chain nat_out { type nat hook output priority -100
    oifname != "lo" udp dport 53 meta mark & 0xfff != 0x539 redirect to :15053
    ${family} daddr != ${loopback} tcp dport 53 meta mark & 0xfff != 0x539 redirect to :15053
    meta l4proto tcp meta mark & 0xfff == 0x111 accept
    oifname "lo" ${family} daddr != ${loopback} accept
    ${family} daddr != ${loopback} meta l4proto tcp meta mark & 0xfff != 0x539 redirect to :15001
  }
}
`
}

function launch(
  namespace: string,
  env: LabEnvironment,
  { stdout, without = [], directory = tmpdir() }: LaunchOptions,
): LabProxy {
  const output = stdout === undefined ? 'pipe' : openSync(stdout, 'w')
  const dropped = without.map((capability) => `-${capability}`).join()
  const confined = dropped === '' ? [] : ['setpriv', `--bounding-set=${dropped}`, `--inh-caps=${dropped}`]
  const program = [process.execPath, join(root, 'bin/lateen.js'), 'ztunnel']
  const command = ['netns', 'exec', namespace, ...confined, ...program]
  const child = spawn('ip', command, {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', output, 'pipe'],
    cwd: directory,
  })
  if (typeof output === 'number') closeSync(output)
  let text = ''
  const lines = new Set<() => void>()
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      for (const check of lines) check()
    })
  }
  const exited = once(child, 'exit') as Promise<[number | null]>
  if (child.pid === undefined) throw new Error('cannot start the proxy')
  const { pid } = child
  return {
    process: child,
    pid,
    log: () => text,
    logged: (pattern) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`not logged in 20 s: ${pattern}`)), 20_000)
        const check = () => {
          const found = text.split('\n').find((line) => pattern.test(line))
          if (found === undefined) return
          clearTimeout(timer)
          lines.delete(check)
          resolve(found)
        }
        lines.add(check)
        child.once('exit', () => {
          clearTimeout(timer)
          reject(new Error(`the proxy ended: ${text.slice(-2000)}`))
        })
        check()
      }),
    rss: () =>
      Number(/VmRSS:\s+(\d+) kB/.exec(execFileSync('cat', [`/proc/${pid}/status`], { encoding: 'utf8' }))?.[1]) * 1024,
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal)
      return (await exited)[0]
    },
    stopped: async () => (await exited)[0],
  }
}
