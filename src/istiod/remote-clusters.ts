// Other clusters of the mesh, from their kubeconfigs: added, changed and removed while the process runs.
import { createHash } from 'node:crypto'
import type { PodIndex } from '../ca/index.ts'
import { clientOf, connectionOfText, type KubeClient } from '../kube/index.ts'
import type { MetricsRegistry } from '../observability/index.ts'
import { openRemoteConnection, type RemoteConnection, type RemoteReading } from './remote-connection.ts'
import type { RemoteKubeconfigs } from './remote-kubeconfigs.ts'
import { createRemoteMetrics } from './remote-metrics.ts'

export interface RemoteClustersOptions extends RemoteReading {
  readonly kubeconfigs: RemoteKubeconfigs
  /** Kubeconfigs that name this cluster are left alone. */
  readonly localId: string
  readonly allowedOptions: readonly string[]
  /** How long the start waits for a cluster; 0: as long as it takes. */
  readonly timeoutMs: number
  readonly userAgent: string
  readonly metrics: MetricsRegistry
}

export type SyncStatus = 'synced' | 'syncing' | 'timeout' | 'closed'

export interface RemoteClusterStatus {
  readonly id: string
  readonly secretName: string
  readonly syncStatus: SyncStatus
  /** Why its newest kubeconfig is not in use. */
  readonly problem?: string
}

/** A cluster whose connection is in force. */
export interface ReadCluster {
  readonly id: string
  readonly connection: Pick<RemoteConnection, 'client' | 'namespaces'>
}

export interface RemoteClusters extends AsyncDisposable {
  /** Resolves when each cluster known at the start is read or has had its time. */
  readonly settled: Promise<void>
  ids(): readonly string[]
  clientOf(id: string): KubeClient | undefined
  podsOf(id: string): PodIndex | undefined
  statuses(): readonly RemoteClusterStatus[]
  /** The clusters whose connections are in force. */
  read(): readonly ReadCluster[]
  /** Calls the listener when `read` may answer differently. */
  subscribe(listener: () => void): () => void
}

interface Wanted {
  /** Where the kubeconfig is from. */
  readonly secretName: string
  readonly kubeconfig: string
  readonly hash: string
}

interface Connected extends RemoteConnection {
  readonly wanted: Wanted
}

interface Held {
  /** The one in force. */
  current?: Connected
  /** A newer one that is not read yet. */
  next?: Connected
  /** The hash of a still newer kubeconfig, while that is looked at. */
  opening?: string
  timedOut: boolean
  /** A kubeconfig that could not be used. */
  refused?: { readonly secretName: string; readonly hash: string; readonly reason: string }
  /** Resolved when there is nothing to wait for any more. */
  readonly done: PromiseWithResolvers<void>
}

/** Starts at once. */
export function followRemoteClusters(options: RemoteClustersOptions): RemoteClusters {
  const { log, inputs, kubeconfigs } = options
  const stack = new AsyncDisposableStack()
  const held = new Map<string, Held>()
  const complaints = new Set<string>()
  const metrics = createRemoteMetrics(options.metrics)
  const closing = new Set<Promise<void>>()
  const listeners = new Set<() => void>()
  let closed = false

  function tell(): void {
    for (const listener of [...listeners]) listener()
  }

  function reconcile(): void {
    const wanted = wantedClusters()
    for (const id of held.keys()) if (!wanted.has(id)) remove(id)
    for (const [id, one] of wanted) {
      const known = held.get(id)
      const newest = known?.opening ?? (known?.next ?? known?.current)?.wanted.hash
      if (newest === one.hash) delete known?.refused
      else if (known?.refused?.hash !== one.hash) connect(id, one).catch((error: unknown) => refuse(id, one, error))
    }
    metrics.counted(held.size)
  }

  /** What is in force stays; where there is nothing, nothing is waited for. */
  function refuse(id: string, { secretName, hash }: Wanted, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error)
    const entry = held.get(id)
    if (entry !== undefined && (entry.opening ?? hash) === hash) {
      delete entry.opening
      entry.refused = { secretName, hash, reason }
      entry.done.resolve()
    }
    if (entry?.current === undefined) metrics.synced(id, false)
    log.error('a remote cluster cannot be used', { cluster: id, secret: secretName, reason })
  }

  /** Of two kubeconfigs for one cluster the one in force keeps it, else the first counts. */
  function wantedClusters(): ReadonlyMap<string, Wanted> {
    const wanted = new Map<string, Wanted>()
    for (const { clusterId: id, origin: secretName, text: kubeconfig } of kubeconfigs.list()) {
      const hash = createHash('sha256').update(kubeconfig).digest('hex')
      if (id === options.localId) {
        complain(`local ${secretName}`, 'a kubeconfig names this cluster as a remote one; it is left alone', {
          cluster: id,
          secret: secretName,
        })
        continue
      }
      const other = wanted.get(id)
      const holder = held.get(id)?.current?.wanted.secretName
      if (other !== undefined && secretName !== holder) {
        complain(`twice ${id} ${secretName}`, 'two kubeconfigs are for one cluster; the first counts', {
          cluster: id,
          secret: secretName,
          counts: other.secretName,
        })
        continue
      }
      wanted.set(id, { secretName, kubeconfig, hash })
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
    const where = `the kubeconfig of cluster ${id} in ${wanted.secretName}`
    // Held at once, so that a change while the kubeconfig is read finds it.
    const entry: Held = known ?? { timedOut: false, done: Promise.withResolvers<void>() }
    held.set(id, entry)
    delete entry.refused
    entry.opening = wanted.hash
    const connection = await connectionOfText(wanted.kubeconfig, where, options.allowedOptions)
    if (closed || held.get(id) !== entry || entry.opening !== wanted.hash) return
    delete entry.opening
    const client = clientOf(connection, { userAgent: options.userAgent, log })
    const connected = { wanted, ...openRemoteConnection(id, client, options) }
    if (entry.next !== undefined) release(entry.next)
    entry.next = connected
    log.info('a remote cluster is being read', { cluster: id, secret: wanted.secretName, server: connection.server })
    connected.synced.then(
      () => takeOver(id, entry, connected),
      () => {},
    )
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
    tell()
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
    tell()
  }

  function release(connected: Connected): void {
    const ending = connected.close().catch((error: unknown) => {
      log.warn('a connection to a remote cluster did not close', { reason: String(error) })
    })
    closing.add(ending)
    void ending.finally(() => closing.delete(ending))
  }

  async function settle(): Promise<void> {
    await kubeconfigs.synced
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

  stack.use(kubeconfigs)
  stack.defer(kubeconfigs.subscribe(reconcile))
  const settled = settle()
  settled.catch(() => {})
  return {
    settled,
    ids: () => [...held.keys()],
    clientOf: (id) => (held.get(id)?.current ?? held.get(id)?.next)?.client,
    podsOf: (id) => (held.get(id)?.current ?? held.get(id)?.next)?.pods,
    statuses: () =>
      [...held].map(([id, { current, next, timedOut, refused }]) => ({
        id,
        ...(refused === undefined ? {} : { problem: refused.reason }),
        secretName: (current ?? next)?.wanted.secretName ?? refused?.secretName ?? '',
        syncStatus: statusOf({ current, next, timedOut, refused }),
      })),
    read: () => [...held].flatMap(([id, { current }]) => (current === undefined ? [] : [{ id, connection: current }])),
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
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

function statusOf({ current, next, timedOut, refused }: Partial<Omit<Held, 'done'>>): SyncStatus {
  if (current !== undefined) return 'synced'
  if (next === undefined && refused !== undefined) return 'closed'
  return timedOut ? 'timeout' : 'syncing'
}
