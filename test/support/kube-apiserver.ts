// A Kubernetes API server with its etcd, as Kubernetes ships it, for one test file. There is no controller manager.
import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeObject, ObjectKey, Resource } from '../../src/api/index.ts'
import { createKubeClient, type KubeClient } from '../../src/kube/index.ts'
import { createClusterPki } from './cluster-pki.ts'
import { freePort } from './free-port.ts'
import { untilObject } from './until-object.ts'

const program = process.env.LATEEN_KUBE_APISERVER ?? '/opt/lateen-kube-apiserver/kube-apiserver'
const etcd = join(dirname(program), 'etcd')

/** Why there is none here, to skip tests with; false where there is one. */
export const kubeApiServerIsMissing: string | false = [program, etcd].every((path) => existsSync(path))
  ? false
  : `no Kubernetes API server at ${program}: build it with .ci/kube-apiserver/build`

export interface AuditedRequest {
  readonly verb: string
  readonly user: { readonly username: string }
  readonly requestURI: string
  readonly requestReceivedTimestamp: string
  readonly responseStatus?: { readonly code?: number }
  readonly objectRef?: { readonly resource?: string; readonly apiGroup?: string; readonly subresource?: string }
}

export interface KubeApiServer extends AsyncDisposable {
  /** The administrator's. */
  readonly kubeconfig: string
  readonly client: KubeClient
  /** The roots of its serving certificate, PEM. */
  readonly ca: string
  /** The key that signs tokens of service accounts, PEM. */
  readonly accountKey: string
  readonly port: number
  /** Path of a kubeconfig with this token, by another port where one is given. */
  kubeconfigOf(token: string, by?: number): string
  /** A text with which other clusters reach this one. */
  kubeconfigText(token: string): string
  /** A client with this token. */
  as(token: string): Promise<KubeClient>
  /** Ends it without a chance to tidy up; etcd stays. */
  kill(): Promise<void>
  /** Starts it again on the same state and port, with further flags. */
  start(flags?: readonly string[]): Promise<void>
  /** Forgets all versions before the present one, as happens by itself every five minutes. */
  compact(): Promise<void>
  /** Whether it was ready at that time: before, it refuses what it cannot judge yet. */
  wasReady(time: Date): boolean
  /** What it was asked so far, and what it answered. */
  requests(): readonly AuditedRequest[]
  /** Resolves with what `find` finds first in the object. */
  until<T extends KubeObject, R>(
    resource: Resource,
    key: ObjectKey,
    find: (object: T | undefined) => R | undefined,
  ): Promise<R>
}

const startsWithinMs = 120_000

export async function startKubeApiServer(flags: readonly string[] = []): Promise<KubeApiServer> {
  const directory = mkdtempSync(join(tmpdir(), 'lateen-kubernetes-'))
  await using failed = new AsyncDisposableStack()
  failed.defer(() => rmSync(directory, { recursive: true, force: true }))
  const files = await writeFiles(directory)
  const [port, etcdPort, peerPort] = [await freePort(), await freePort(), await freePort()]
  const store = await startEtcd(directory, etcdPort, peerPort)
  failed.defer(() => end(store, 'SIGKILL'))
  let child: ChildProcess | undefined
  failed.defer(() => end(child, 'SIGKILL'))

  function kubeconfigText(user: object, by = port): string {
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'kubernetes',
          cluster: {
            server: `https://127.0.0.1:${by}`,
            'certificate-authority-data': Buffer.from(files.ca).toString('base64'),
          },
        },
      ],
      users: [{ name: 'user', user }],
      contexts: [{ name: 'it', context: { cluster: 'kubernetes', user: 'user' } }],
      'current-context': 'it',
    })
  }

  const kubeconfig = join(directory, 'admin.kubeconfig')
  writeFileSync(kubeconfig, kubeconfigText({ 'client-certificate': files.adminCert, 'client-key': files.adminKey }))
  let count = 0
  const kubeconfigOf = (token: string, by?: number): string => {
    count += 1
    const path = join(directory, `token-${count}.kubeconfig`)
    writeFileSync(path, kubeconfigText({ token }, by))
    return path
  }

  const starts: { readonly from: number; to: number }[] = []
  async function start(more: readonly string[] = []): Promise<void> {
    const starting = { from: Date.now(), to: Number.POSITIVE_INFINITY }
    starts.push(starting)
    const started = spawnBound(program, [...files.flags(port, etcdPort), ...flags, ...more], 'pipe')
    child = started
    let said = ''
    started.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-8_000)
    })
    const until = Date.now() + startsWithinMs
    while (!(await isReady(client))) {
      if (started.exitCode !== null) throw new Error(`the API server ended with ${started.exitCode}:\n${said}`)
      if (Date.now() > until) throw new Error(`the API server was not ready in time:\n${said}`)
      await sleep(100)
    }
    starting.to = Date.now()
  }

  const client = await createKubeClient({ kubeconfig })
  const clients = [client]
  failed.defer(async () => {
    for (const one of clients) await one.close()
  })
  await start()
  const stack = failed.move()
  return {
    kubeconfig,
    client,
    ca: files.ca,
    accountKey: files.accountKey,
    port,
    kubeconfigOf,
    kubeconfigText: (token) => kubeconfigText({ token }),
    async as(token) {
      const created = await createKubeClient({ kubeconfig: kubeconfigOf(token) })
      clients.push(created)
      return created
    },
    kill: () => end(child, 'SIGKILL'),
    start,
    async compact() {
      const { header } = await askEtcd<{ header: { revision: string } }>(etcdPort, 'range', { key: btoa('any') })
      await askEtcd(etcdPort, 'compaction', { revision: header.revision })
    },
    wasReady: (time) => !starts.some(({ from, to }) => from <= time.getTime() && time.getTime() <= to),
    requests: () =>
      readFileSync(files.auditLog, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as AuditedRequest),
    until: (resource, key, find) => untilObject(client, resource, key, find, 30_000),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

/** The JSON form of etcd's API of keys and values. */
async function askEtcd<T>(port: number, method: string, body: object): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${port}/v3/kv/${method}`, {
    method: 'POST',
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`etcd: ${method}: ${await response.text()}`)
  return (await response.json()) as T
}

/** A process that does not outlive this one, however that ends. */
function spawnBound(path: string, args: readonly string[], stderr: 'pipe' | 'inherit'): ChildProcess {
  return spawn('setpriv', ['--pdeathsig', 'KILL', path, ...args], { stdio: ['ignore', 'ignore', stderr] })
}

async function isReady(client: KubeClient): Promise<boolean> {
  try {
    return (await client.request('/readyz')).ok
  } catch {
    return false
  }
}

async function end(child: ChildProcess | undefined, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

async function startEtcd(directory: string, port: number, peerPort: number): Promise<ChildProcess> {
  const [client, peer] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`]
  const flags = {
    name: 'one',
    'data-dir': join(directory, 'etcd'),
    'listen-client-urls': client,
    'advertise-client-urls': client,
    'listen-peer-urls': peer,
    'initial-advertise-peer-urls': peer,
    'initial-cluster': `one=${peer}`,
    'log-level': 'error',
    // It need not outlive the machine.
    'unsafe-no-fsync': 'true',
  }
  return spawnBound(
    etcd,
    Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
    'inherit',
  )
}

async function writeFiles(directory: string) {
  const path = (name: string): string => join(directory, name)
  const pki = await createClusterPki()
  const accounts = generateKeyPairSync('rsa', { modulusLength: 2048 })
  mkdirSync(path('pki'))
  const contents = {
    'pki/ca.crt': pki.ca,
    'pki/server.crt': pki.server.certificate,
    'pki/server.key': pki.server.key,
    'pki/admin.crt': pki.admin.certificate,
    'pki/admin.key': pki.admin.key,
    'pki/sa.key': accounts.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    'pki/sa.pub': accounts.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    'audit.yaml':
      'apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{ level: Metadata }]\n',
    'audit.log': '',
  }
  for (const [name, content] of Object.entries(contents)) writeFileSync(path(name), content, { mode: 0o600 })
  const issuer = 'https://kubernetes.default.svc.cluster.local'
  const flags = (port: number, etcdPort: number): readonly string[] =>
    Object.entries({
      'etcd-servers': `http://127.0.0.1:${etcdPort}`,
      'bind-address': '127.0.0.1',
      'secure-port': String(port),
      'cert-dir': path('pki'),
      'tls-cert-file': path('pki/server.crt'),
      'tls-private-key-file': path('pki/server.key'),
      'client-ca-file': path('pki/ca.crt'),
      'service-account-issuer': issuer,
      'service-account-key-file': path('pki/sa.pub'),
      'service-account-signing-key-file': path('pki/sa.key'),
      'authorization-mode': 'Node,RBAC',
      'enable-admission-plugins': 'NodeRestriction',
      'service-cluster-ip-range': '10.96.0.0/16',
      // Nobody reaches it by a Service.
      'endpoint-reconciler-type': 'none',
      'audit-policy-file': path('audit.yaml'),
      'audit-log-path': path('audit.log'),
      profiling: 'false',
      'runtime-config': 'certificates.k8s.io/v1beta1/clustertrustbundles=true',
      'feature-gates': 'ClusterTrustBundle=true',
    }).map(([name, value]) => `--${name}=${value}`)
  return {
    ca: pki.ca,
    accountKey: contents['pki/sa.key'],
    adminCert: path('pki/admin.crt'),
    adminKey: path('pki/admin.key'),
    auditLog: path('audit.log'),
    flags,
  }
}
