// `lateen up` for tests: an instance of its own, commands in its pods, and what it must not leave behind.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import WebSocket from 'ws'
import { type KubeObject, resources } from '../../src/api/index.ts'
import {
  applyManifests,
  createKubeClient,
  type KubeClient,
  loadConnection,
  readManifests,
} from '../../src/kube/index.ts'
import { instancePaths } from '../../src/standalone/index.ts'

const lateen = join(import.meta.dirname, '../../bin/lateen.js')

export const needsRoot = process.getuid?.() === 0 ? false : 'needs root'

export interface Output {
  readonly code: number
  readonly output: string
}

export interface TestPod extends KubeObject {
  readonly spec?: { readonly nodeName?: string; readonly containers: readonly unknown[] }
  readonly status?: {
    readonly phase?: string
    readonly podIP?: string
    readonly containerStatuses?: readonly {
      readonly ready: boolean
      readonly restartCount: number
      readonly state?: { readonly waiting?: { readonly reason?: string; readonly message?: string } }
    }[]
  }
}

export interface ProcessOfInstance {
  readonly name: string
  readonly pid: number
}

export interface MeshInstance extends AsyncDisposable {
  readonly stateDir: string
  readonly kubeconfig: string
  readonly client: KubeClient
  /** Runs `lateen <words> --state-dir …`. */
  command(...words: string[]): Promise<Output>
  kubectl(...words: string[]): Promise<Output>
  apply(text: string): Promise<void>
  /** Runs a program in the first container of a pod of the default namespace, or of `namespace/pod`. */
  exec(pod: string, ...argv: string[]): Promise<Output>
  /** Resolves with the pod when it is as asked. */
  pod(name: string, holds?: (pod: TestPod) => boolean): Promise<TestPod>
  /** Resolves when the pod's name is not in the API any more. */
  podGone(name: string): Promise<void>
  pods(namespace: string, labelSelector: string): Promise<TestPod[]>
  processes(): ProcessOfInstance[]
  /** Resolves when `lateen status` says that everything runs. */
  settled(): Promise<void>
}

/** Runs any `lateen` command to its end. */
export async function lateenCommand(words: readonly string[], input?: string): Promise<Output> {
  return run(process.execPath, [lateen, ...words], input)
}

/** `lateen up` in the foreground, as a process of the test. */
export function startUp(words: readonly string[], node = process.execPath): ChildProcess {
  return spawn(node, [lateen, 'up', ...words], { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
}

export function temporaryDirectory(): string {
  return mkdtempSync(join(tmpdir(), `lateen-e2e-${randomBytes(2).toString('hex')}-`))
}

/** A running instance with two nodes and nothing but the system in it. Disposing ends it and says what is left of it. */
export async function startMeshInstance(...flags: string[]): Promise<MeshInstance> {
  const directory = temporaryDirectory()
  const stateDir = join(directory, 'state')
  const { kubeconfig } = instancePaths(stateDir)
  const command = (...words: string[]) => lateenCommand([...words, '--state-dir', stateDir])
  const started = await command('up', '--detach', '--no-sample', '--nodes', '2', ...flags)
  if (started.code !== 0) {
    await command('down')
    rmSync(directory, { recursive: true, force: true })
    assert.fail(started.output)
  }
  const client = await createKubeClient({ kubeconfig })
  const pod = async (name: string, holds: (pod: TestPod) => boolean = isReady) => {
    const [namespace, own] = split(name)
    await using informer = client.informer<TestPod>(resources.pods, {
      namespace,
      fieldSelector: `metadata.name=${own}`,
    })
    const { promise, resolve } = Promise.withResolvers<TestPod>()
    informer.subscribe((changes) => {
      for (const { kind, object } of changes) if (kind !== 'deleted' && holds(object)) resolve(object)
    })
    return await promise
  }
  return {
    stateDir,
    kubeconfig,
    client,
    command,
    kubectl: (...words) => run('kubectl', ['--kubeconfig', kubeconfig, ...words]),
    async apply(text) {
      const manifests = readManifests(['-'], () => text)
      await applyManifests(client, manifests, { namespace: 'default', fieldManager: 'test' })
    },
    exec: (name, ...argv) => execInPod(kubeconfig, ...split(name), argv),
    pod,
    async podGone(name) {
      const [namespace, own] = split(name)
      await using informer = client.informer(resources.pods, { namespace, fieldSelector: `metadata.name=${own}` })
      await informer.synced
      const { promise, resolve } = Promise.withResolvers<void>()
      const look = () => informer.list().length === 0 && resolve()
      informer.subscribe(look)
      look()
      await promise
    },
    pods: async (namespace, labelSelector) =>
      (await client.list<TestPod>(resources.pods, { namespace, labelSelector })).items,
    processes: () => JSON.parse(readFileSync(join(stateDir, 'processes.json'), 'utf8')) as ProcessOfInstance[],
    async settled() {
      while ((await command('status')).code !== 0);
    },
    async [Symbol.asyncDispose]() {
      await client.close()
      const { code, output } = await command('down')
      const left = leftBehind(stateDir)
      rmSync(directory, { recursive: true, force: true })
      assert.equal(code, 0, output)
      assert.deepEqual(left, [])
    },
  }
}

export function isReady({ status }: TestPod): boolean {
  return status?.containerStatuses?.every((one) => one.ready) === true
}

/** What of an instance is still on this machine. */
export function leftBehind(stateDir: string): string[] {
  const { instance, run: runDirectory } = instancePaths(stateDir)
  const ours = (place: string) =>
    (existsSync(place) ? readdirSync(place) : [])
      .filter((name) => name.includes(instance))
      .map((name) => join(place, name))
  const processes = readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false
    const text = readFile(`/proc/${pid}/cmdline`) + readFile(`/proc/${pid}/environ`)
    return text.includes(stateDir) || text.includes(`lateen-${instance}`)
  })
  return [
    ...ours('/run/netns'),
    ...ours('/sys/class/net'),
    ...ours('/sys/fs/cgroup'),
    ...ours('/sys/fs/cgroup/unified'),
    ...(existsSync(runDirectory) ? [runDirectory] : []),
    ...(existsSync(stateDir) ? [stateDir] : []),
    ...readFile('/proc/self/mountinfo')
      .split('\n')
      .filter((line) => line.includes(stateDir)),
    ...processes.map((pid) => `process ${pid}: ${readFile(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')}`),
  ]
}

function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function split(name: string): [namespace: string, name: string] {
  const [first = '', second] = name.split('/')
  return second === undefined ? ['default', first] : [first, second]
}

async function run(file: string, argv: readonly string[], input?: string): Promise<Output> {
  const child = spawn(file, argv, { stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] })
  child.stdin?.end(input)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => (output += text))
  }
  const [code] = (await once(child, 'close')) as [number | null]
  return { code: code ?? 137, output }
}

async function execInPod(
  kubeconfig: string,
  namespace: string,
  name: string,
  argv: readonly string[],
): Promise<Output> {
  const connection = await loadConnection({ kubeconfig })
  const { ca, cert, key } = await connection.tls()
  const query = new URLSearchParams([
    ...argv.map((word): [string, string] => ['command', word]),
    ['stdout', 'true'],
    ['stderr', 'true'],
  ])
  const url = `${connection.server.replace(/^http/, 'ws')}/api/v1/namespaces/${namespace}/pods/${name}/exec?${query}`
  const socket = new WebSocket(url, ['v5.channel.k8s.io'], { ca, cert, key })
  let output = ''
  let code: number | undefined
  socket.on('message', (message: Buffer) => {
    const text = message.subarray(1).toString('utf8')
    if (message[0] === 1 || message[0] === 2) output += text
    if (message[0] === 3) {
      const status = JSON.parse(text) as { status?: string; details?: { causes?: { message?: string }[] } }
      code = status.status === 'Success' ? 0 : Number(status.details?.causes?.[0]?.message ?? 1)
    }
  })
  await once(socket, 'close')
  assert.ok(code !== undefined, `exec in ${namespace}/${name} broke: ${output}`)
  return { code, output }
}
