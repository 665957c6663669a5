// Other clusters of the mesh, from the kubeconfigs in Secrets: added, changed and removed while the process runs.
import { createHash } from 'node:crypto'
import { type KubeObject, resources } from '../api/index.ts'
import { createPodIndex, type PodIndex } from '../ca/index.ts'
import { type FindProblems, followInformer, type ProblemLog } from '../config/index.ts'
import {
  type AmbientInputs,
  type AmbientKind,
  type AmbientObjects,
  ambientKinds,
  createKeptFields,
} from '../discovery/ambient/index.ts'
import { clientOf, connectionOfText, type Informer, type KubeClient } from '../kube/index.ts'
import type { MetricsRegistry, Scope } from '../observability/index.ts'
import { followOptions, type Inbound, indexPods } from './cluster.ts'
import { createRemoteMetrics } from './remote-metrics.ts'

export interface RemoteClustersOptions {
  readonly client: KubeClient
  /** Where the Secrets are. */
  readonly namespace: string
  /** Secrets that name this cluster are left alone. */
  readonly localId: string
  /** The mesh is made of all clusters; else the others only vouch for the tokens and pods of their own. */
  readonly isMultiNetwork: boolean
  readonly allowedOptions: readonly string[]
  /** How long the start waits for a cluster; 0: as long as it takes. */
  readonly timeoutMs: number
  readonly userAgent: string
  readonly inputs: AmbientInputs
  readonly problems: FindProblems
  readonly problemLog: ProblemLog
  readonly inbound: Inbound
  readonly metrics: MetricsRegistry
  readonly log: Scope
}

export type SyncStatus = 'synced' | 'syncing' | 'timeout' | 'closed'

export interface RemoteClusterStatus {
  readonly id: string
  readonly secretName: string
  readonly syncStatus: SyncStatus
}

export interface RemoteClusters extends AsyncDisposable {
  /** Resolves when each cluster known at the start is read or has had its time. */
  readonly settled: Promise<void>
  ids(): readonly string[]
  clientOf(id: string): KubeClient | undefined
  podsOf(id: string): PodIndex | undefined
  statuses(): readonly RemoteClusterStatus[]
}

interface Secret extends KubeObject {
  data?: Record<string, string>
}

interface Wanted {
  readonly secretName: string
  readonly kubeconfig: string
  readonly hash: string
}

/** One connection to a cluster with what is read through it. */
interface Connected {
  readonly wanted: Wanted
  readonly client: KubeClient
  readonly pods: PodIndex
  readonly synced: Promise<void>
  /** Makes the mesh see what this connection reads, in one step. */
  attach(): void
  close(): Promise<void>
}

interface Held {
  /** The one in force. */
  current?: Connected
  /** A newer one that is not read yet. */
  next?: Connected
  timedOut: boolean
  /** Resolved when there is nothing to wait for any more. */
  readonly done: PromiseWithResolvers<void>
}

/** Starts at once. */
export function followRemoteClusters(options: RemoteClustersOptions): RemoteClusters {
  const { client, namespace, log, inputs } = options
  const stack = new AsyncDisposableStack()
  const held = new Map<string, Held>()
  const complaints = new Set<string>()
  const metrics = createRemoteMetrics(options.metrics)
  const closing = new Set<Promise<void>>()
  let closed = false

  const secrets = stack.use(
    client.informer<Secret>(resources.secrets, { namespace, labelSelector: 'istio/multiCluster=true' }),
  )

  function reconcile(): void {
    const wanted = wantedClusters(secrets.list())
    for (const id of held.keys()) if (!wanted.has(id)) remove(id)
    for (const [id, one] of wanted) {
      const known = held.get(id)
      if ((known?.next ?? known?.current)?.wanted.hash === one.hash) continue
      connect(id, one).catch((error: unknown) => {
        complain(`${one.secretName} ${one.hash}`, 'a remote cluster cannot be used', {
          cluster: id,
          secret: one.secretName,
          reason: error instanceof Error ? error.message : String(error),
        })
      })
    }
    metrics.counted(held.size)
  }

  /** Of two Secrets with one cluster the one in force keeps it, else the first by name. */
  function wantedClusters(list: readonly Secret[]): ReadonlyMap<string, Wanted> {
    const wanted = new Map<string, Wanted>()
    const byName = [...list].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    for (const { metadata, data = {} } of byName) {
      const secretName = `${metadata.namespace ?? ''}/${metadata.name}`
      for (const [id, encoded] of Object.entries(data)) {
        const kubeconfig = Buffer.from(encoded, 'base64').toString('utf8')
        const hash = createHash('sha256').update(kubeconfig).digest('hex')
        if (id === options.localId) {
          complain(`local ${secretName}`, 'a Secret names this cluster as a remote one; it is left alone', {
            cluster: id,
            secret: secretName,
          })
          continue
        }
        const other = wanted.get(id)
        const holder = held.get(id)?.current?.wanted.secretName
        if (other !== undefined && secretName !== holder) {
          complain(`twice ${id} ${secretName}`, 'two Secrets have one cluster; the first counts', {
            cluster: id,
            secret: secretName,
            counts: other.secretName,
          })
          continue
        }
        wanted.set(id, { secretName, kubeconfig, hash })
      }
    }
    return wanted
  }

  function complain(key: string, message: string, fields: Readonly<Record<string, string>>): void {
    if (complaints.has(key)) return
    complaints.add(key)
    log.error(message, fields)
  }

  async function connect(id: string, wanted: Wanted): Promise<void> {
    const known = held.get(id)
    metrics.event(known === undefined ? 'add' : 'update')
    const where = `Secret ${wanted.secretName}: ${id}`
    // Held at once, so that a change while the kubeconfig is read finds it.
    const entry: Held = known ?? { timedOut: false, done: Promise.withResolvers<void>() }
    held.set(id, entry)
    const connection = await connectionOfText(wanted.kubeconfig, where, options.allowedOptions)
    if (closed || held.get(id) !== entry) return
    const connected = open(id, clientOf(connection, { userAgent: options.userAgent, log }), wanted)
    if (entry.next !== undefined) release(entry.next)
    entry.next = connected
    log.info('a remote cluster is being read', { cluster: id, secret: wanted.secretName, server: connection.server })
    connected.synced.then(
      () => takeOver(id, entry, connected),
      () => {},
    )
  }

  function open(id: string, remote: KubeClient, wanted: Wanted): Connected {
    const pods = createPodIndex()
    const stops: (() => void)[] = []
    const kinds = (Object.keys(ambientKinds) as AmbientKind[]).filter((kind) =>
      options.isMultiNetwork ? ambientKinds[kind] === 'every-cluster' : kind === 'pods',
    )
    const kept = createKeptFields()
    const attachments: (() => void)[] = []

    function read<K extends AmbientKind>(kind: K): Informer<AmbientObjects[K]> {
      const keep = kept[kind]
      const informer = remote.informer<AmbientObjects[K]>(resources[kind], keep === undefined ? {} : { keep })
      attachments.push(() => follow(kind, informer))
      return informer
    }

    function follow<K extends AmbientKind>(kind: K, informer: Informer<AmbientObjects[K]>): void {
      inputs.feed(id, kind).replace([])
      const followed = followInformer<AmbientObjects[K]>({
        ...followOptions(kind, { ...options, clusterId: id }),
        informer,
      })
      stops.push(() => followed.stop())
    }

    const informers = kinds.filter((kind) => kind !== 'pods').map((kind) => read(kind))
    const podInformer = read('pods')
    stops.push(indexPods(podInformer, pods))
    return {
      wanted,
      client: remote,
      pods,
      synced: Promise.all([podInformer, ...informers].map(({ synced }) => synced)).then(() => undefined),
      attach() {
        if (options.isMultiNetwork) for (const attachOne of attachments) attachOne()
      },
      async close() {
        for (const stop of stops) stop()
        await remote.close()
      },
    }
  }

  /** The old connection serves until the new one has read everything; what is the same in both is no change. */
  function takeOver(id: string, entry: Held, connected: Connected): void {
    if (closed || held.get(id) !== entry || entry.next !== connected) return
    const old = entry.current
    inputs.graph.transaction(() => connected.attach())
    entry.current = connected
    delete entry.next
    entry.timedOut = false
    entry.done.resolve()
    if (old !== undefined) release(old)
    metrics.synced(id, true)
    log.info('a remote cluster is read', { cluster: id })
  }

  function remove(id: string): void {
    const entry = held.get(id)
    held.delete(id)
    entry?.done.resolve()
    metrics.event('delete')
    metrics.forget(id)
    for (const one of [entry?.current, entry?.next]) if (one !== undefined) release(one)
    inputs.removeCluster(id)
    log.info('a remote cluster was removed', { cluster: id })
  }

  function release(connected: Connected): void {
    const ending = connected.close().catch((error: unknown) => {
      log.warn('a connection to a remote cluster did not close', { reason: String(error) })
    })
    closing.add(ending)
    void ending.finally(() => closing.delete(ending))
  }

  async function settle(): Promise<void> {
    await secrets.synced
    await Promise.all([...held].map(([id, entry]) => waitFor(id, entry)))
  }

  async function waitFor(id: string, entry: Held): Promise<void> {
    const tooLate = (): void => {
      entry.timedOut = true
      metrics.timeout()
      metrics.synced(id, false)
      log.error('a remote cluster is not read in time; the start goes on without it', { cluster: id })
      entry.done.resolve()
    }
    const timer = options.timeoutMs === 0 ? undefined : setTimeout(tooLate, options.timeoutMs)
    await entry.done.promise
    clearTimeout(timer)
  }

  stack.defer(secrets.subscribe(reconcile))
  const settled = settle()
  settled.catch(() => {})
  return {
    settled,
    ids: () => [...held.keys()],
    clientOf: (id) => (held.get(id)?.current ?? held.get(id)?.next)?.client,
    podsOf: (id) => (held.get(id)?.current ?? held.get(id)?.next)?.pods,
    statuses: () =>
      [...held].map(([id, { current, next, timedOut }]) => ({
        id,
        secretName: (current ?? next)?.wanted.secretName ?? '',
        syncStatus: current !== undefined ? 'synced' : next === undefined ? 'closed' : timedOut ? 'timeout' : 'syncing',
      })),
    async [Symbol.asyncDispose]() {
      closed = true
      await stack.disposeAsync()
      for (const { current, next, done } of held.values()) {
        done.resolve()
        for (const one of [current, next]) if (one !== undefined) release(one)
      }
      await Promise.all(closing)
    },
  }
}
