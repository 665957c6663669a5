// A Kubernetes API server that is made ready for the mesh as an operator does: with what `lateen manifest` prints, and nothing else.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Condition, type KubeObject, type Resource, resources } from '../../src/api/index.ts'
import { applyManifests, type KubeClient, type ManifestProblem, parseManifests } from '../../src/kube/index.ts'
import { namespaceNamed, tokenOf } from './cluster-objects.ts'
import { type RunningDiscovery, startDiscovery } from './discovery.ts'
import { type AuditedRequest, type KubeApiServer, startKubeApiServer } from './kube-apiserver.ts'

const run = promisify(execFile)
const program = join(import.meta.dirname, '../../src/commands/main.ts')

export interface MeshCluster extends AsyncDisposable {
  readonly api: KubeApiServer
  readonly client: KubeClient
  /** A directory of its own for state. */
  readonly dir: string
  /** A kubeconfig of the service account of the system namespace, with the rights that the mesh gives it. */
  kubeconfigOf(account: string, by?: number): Promise<string>
  /** A token by which the account calls the API server. */
  tokenOf(account: string): Promise<string>
  /** A control plane with the rights of istiod. */
  startDiscovery(options?: {
    readonly flags?: Readonly<Record<string, string>>
    readonly env?: Readonly<Record<string, string>>
    /** The port by which it reaches the API server, where that is another. */
    readonly by?: number
  }): Promise<RunningDiscovery>
  /** What the service account was refused by an API server that was ready. */
  refusals(account?: string): readonly AuditedRequest[]
}

export interface MeshClusterOptions {
  /** Of the API server. */
  readonly flags?: readonly string[]
  /** Of `lateen manifest rights`. */
  readonly rights?: readonly string[]
}

/** What a command of ours prints. */
export async function printed(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [program, ...args], { maxBuffer: 64 * 1024 * 1024 })
  return stdout
}

export async function applyText(client: KubeClient, text: string): Promise<void> {
  const problems: ManifestProblem[] = []
  const manifests = parseManifests(text, 'text', problems)
  if (problems.length > 0) throw new Error(JSON.stringify(problems))
  await applyManifests(client, manifests, { namespace: 'default', fieldManager: 'test' })
}

export async function startMeshCluster({ flags = [], rights = [] }: MeshClusterOptions = {}): Promise<MeshCluster> {
  await using failed = new AsyncDisposableStack()
  const dir = mkdtempSync(join(tmpdir(), 'lateen-mesh-cluster-'))
  failed.defer(() => rmSync(dir, { recursive: true, force: true }))
  const texts = Promise.all([printed('manifest', 'crds', '--gateway-api'), printed('manifest', 'rights', ...rights)])
  const api = failed.use(await startKubeApiServer(flags))
  const { client } = api
  for (const name of ['istio-system', 'app']) await client.create(resources.namespaces, namespaceNamed(name))
  for (const text of await texts) await applyText(client, text)
  await allEstablished(client)
  const audience = 'https://kubernetes.default.svc.cluster.local'
  const ownToken = (name: string) => tokenOf(client, { namespace: 'istio-system', name }, { audience })
  const kubeconfigOf = async (name: string, by?: number): Promise<string> => api.kubeconfigOf(await ownToken(name), by)
  const stack = failed.move()
  return {
    api,
    client,
    dir,
    kubeconfigOf,
    tokenOf: ownToken,
    startDiscovery: async ({ flags: more = {}, env = {}, by } = {}) =>
      startDiscovery({
        kubeconfig: await kubeconfigOf('istiod', by),
        stateDir: dir,
        flags: { grpcAddr: '127.0.0.1:0', networksConfig: join(dir, 'none'), ...more },
        env,
      }),
    refusals: (account = 'istiod') =>
      api
        .requests()
        .filter(({ user }) => user.username === `system:serviceaccount:istio-system:${account}`)
        .filter(({ responseStatus }) => responseStatus?.code === 403)
        .filter(({ requestReceivedTimestamp }) => api.wasReady(new Date(requestReceivedTimestamp))),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

/** Resolves when every definition is in force; rejects for one that the API server finds fault with. */
export async function allEstablished(client: KubeClient): Promise<void> {
  type Crd = KubeObject<unknown, { readonly conditions?: readonly Condition[] }>
  const resource: Resource = resources.customResourceDefinitions
  await using informer = client.informer<Crd>(resource)
  await informer.synced
  const done = Promise.withResolvers<void>()
  const timer = setTimeout(() => done.reject(new Error('definitions are not in force in time')), 30_000)
  const unsubscribe = informer.subscribe(() => {
    const all = informer.list().map(({ metadata, status }) => ({ metadata, conditions: status?.conditions ?? [] }))
    const bad = all.find(({ conditions }) =>
      conditions.some(({ type, status }) => type === 'NonStructuralSchema' && status === 'True'),
    )
    if (bad !== undefined) done.reject(new Error(JSON.stringify(bad)))
    const isInForce = (conditions: readonly Condition[]) =>
      conditions.some(({ type, status }) => type === 'Established' && status === 'True')
    if (all.every(({ conditions }) => isInForce(conditions))) done.resolve()
  })
  try {
    await done.promise
  } finally {
    clearTimeout(timer)
    unsubscribe()
  }
}
