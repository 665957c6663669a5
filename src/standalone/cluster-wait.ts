// Waits for what the API says: nodes, pods.
import { type KubeObject, resources } from '../api/index.ts'
import type { KubeClient } from '../kube/index.ts'
import { StandaloneError } from './error.ts'
import type { Pod } from './node/types.ts'

/**
 * Resolves when the API server answers that it is ready.
 * @throws StandaloneError after `timeoutMs`, or earlier when it is hopeless, with what `why` tells
 */
export async function waitForApi(
  connect: () => Promise<KubeClient>,
  {
    signal,
    timeoutMs,
    isHopeless,
    why,
  }: { signal: AbortSignal; timeoutMs: number; isHopeless: () => boolean; why: () => Promise<string> },
): Promise<KubeClient> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    signal.throwIfAborted()
    if (Date.now() > deadline || isHopeless()) {
      throw new StandaloneError('NO_API_SERVER', `the API server does not come up; ${await why()}`)
    }
    try {
      const client = await connect()
      try {
        const response = await client.request('/readyz', { signal })
        await response.text()
        if (response.ok) return client
      } catch {
        // not yet
      }
      await client.close()
    } catch {
      // the kubeconfig is not written yet
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Waiting is silent for so long, and between two notes. */
const quietMs = 15_000

/** Resolves when `unmet` returns nothing any more; `note` hears of what is missing when that takes long. */
export async function waitUntil(
  client: KubeClient,
  unmet: (lists: { pods: readonly Pod[]; nodes: readonly KubeObject[] }) => readonly string[],
  options: {
    readonly timeoutMs: number
    readonly signal: AbortSignal
    readonly note: (message: string) => void
  },
): Promise<void> {
  options.signal.throwIfAborted()
  await using pods = client.informer<Pod>(resources.pods)
  await using nodes = client.informer<KubeObject>(resources.nodes)
  await Promise.all([pods.synced, nodes.synced])
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let missing: readonly string[] = []
  let saidAt = Date.now()
  const look = () => {
    missing = unmet({ pods: pods.list(), nodes: nodes.list() })
    if (missing.length === 0) resolve()
    else if (Date.now() - saidAt >= quietMs) {
      saidAt = Date.now()
      options.note(`waiting for ${missing.join(', ')}`)
    }
  }
  const onAbort = () => reject(options.signal.reason)
  // While the lists were read, too: an event that is over is not told again.
  if (options.signal.aborted) onAbort()
  options.signal.addEventListener('abort', onAbort, { once: true })
  const timer = setTimeout(
    () =>
      reject(new StandaloneError('NOT_READY', `not ready after ${options.timeoutMs / 1000} s: ${missing.join('; ')}`)),
    options.timeoutMs,
  )
  const interval = setInterval(look, 1000)
  const ends = [pods.subscribe(look), nodes.subscribe(look)]
  look()
  try {
    await promise
  } finally {
    clearTimeout(timer)
    clearInterval(interval)
    options.signal.removeEventListener('abort', onAbort)
    for (const end of ends) end()
  }
}

/** @param sinceMs what was said before does not count (heartbeats of nodes) */
export function isReady(object: KubeObject, sinceMs = 0): boolean {
  const { conditions = [] } = (object.status ?? {}) as {
    conditions?: { type: string; status: string; lastHeartbeatTime?: string }[]
  }
  return conditions.some(
    ({ type, status, lastHeartbeatTime }) =>
      type === 'Ready' && status === 'True' && (sinceMs === 0 || Date.parse(lastHeartbeatTime ?? '') >= sinceMs),
  )
}

/** Why a pod is not ready, in a few words; undefined when it is (or has done its work). */
export function unreadiness(pod: Pod): string | undefined {
  if (isReady(pod) || pod.status?.phase === 'Succeeded' || pod.metadata.deletionTimestamp !== undefined)
    return undefined
  const waiting = pod.status?.containerStatuses?.find((status) => status.state?.waiting)?.state?.waiting
  const why = waiting?.reason ?? pod.status?.phase ?? 'Pending'
  return `${pod.metadata.namespace}/${pod.metadata.name} (${why})`
}
