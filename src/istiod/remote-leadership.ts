// What the control plane writes into remote clusters that it is asked to lead: the trust bundle, into every namespace.
import { runLeaderElection } from '../kube/index.ts'
import type { Scope } from '../observability/index.ts'
import type { ReadCluster, RemoteClusters } from './remote-clusters.ts'

export interface RemoteLeadershipOptions {
  readonly remoteClusters: Pick<RemoteClusters, 'read' | 'subscribe'>
  /** A cluster asks for us when this namespace of it says so. */
  readonly systemNamespace: string
  readonly localId: string
  readonly leaseName: string
  readonly identity: string
  /** Works in one cluster until the signal aborts. */
  readonly lead: (cluster: ReadCluster, signal: AbortSignal) => Promise<void>
  readonly log: Scope
}

/** Names the control planes that lead a cluster: ids of their clusters, or `*`. */
export const controlPlaneClusters = 'topology.istio.io/controlPlaneClusters'

interface Work {
  readonly connection: ReadCluster['connection']
  stop(): Promise<void>
}

/** Leads in each remote cluster that asks for it, as long as it does and its connection is in force, until the signal aborts. */
export async function leadRemoteClusters(options: RemoteLeadershipOptions, signal: AbortSignal): Promise<void> {
  const { remoteClusters, systemNamespace, log } = options
  const running = new Map<string, Work>()
  const watched = new Map<string, { readonly connection: ReadCluster['connection']; end(): void }>()
  const stopping = new Set<Promise<void>>()

  function reconcile(): void {
    const present = new Map(remoteClusters.read().map((cluster) => [cluster.id, cluster]))
    for (const [id, { connection, end }] of watched) {
      if (present.get(id)?.connection === connection) continue
      end()
      watched.delete(id)
    }
    for (const [id, { connection }] of running) {
      const cluster = present.get(id)
      if (cluster?.connection !== connection || !asksForUs(cluster)) stop(id)
    }
    for (const [id, cluster] of present) {
      if (!watched.has(id)) watch(cluster)
      if (!running.has(id) && asksForUs(cluster)) start(cluster)
    }
  }

  function asksForUs({ connection }: ReadCluster): boolean {
    const annotations = connection.namespaces.get({ name: systemNamespace })?.metadata.annotations
    const named = (annotations?.[controlPlaneClusters] ?? '').split(',').map((id) => id.trim())
    return named.includes('*') || named.includes(options.localId)
  }

  function watch({ id, connection }: ReadCluster): void {
    // Set before the first call, which looks at it.
    const entry = { connection, end: (): void => {} }
    watched.set(id, entry)
    let isFirst = true
    entry.end = connection.namespaces.subscribe((changes) => {
      if (!isFirst && changes.some(({ object }) => object.metadata.name === systemNamespace)) reconcile()
    })
    isFirst = false
  }

  function start(cluster: ReadCluster): void {
    const { id, connection } = cluster
    const end = new AbortController()
    log.info('a remote cluster asks to be led', { cluster: id })
    const done = runLeaderElection(
      {
        client: connection.client,
        namespace: systemNamespace,
        name: options.leaseName,
        identity: options.identity,
        lead: (leading) => options.lead(cluster, leading),
        log,
      },
      AbortSignal.any([signal, end.signal]),
    )
    running.set(id, {
      connection,
      stop: () => {
        end.abort()
        return done
      },
    })
  }

  function stop(id: string): void {
    const ending = running.get(id)?.stop()
    running.delete(id)
    if (ending === undefined) return
    stopping.add(ending)
    void ending.finally(() => stopping.delete(ending))
  }

  const end = remoteClusters.subscribe(reconcile)
  reconcile()
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
  end()
  for (const { end: endWatch } of watched.values()) endWatch()
  for (const id of [...running.keys()]) stop(id)
  await Promise.all(stopping)
}
