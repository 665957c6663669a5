// Why pods are not ready, for people: what they wait for, what the events say, and the end of their logs.
import { type KubeObject, resources } from '../api/index.ts'
import type { KubeClient } from '../kube/index.ts'
import { unreadiness } from './cluster-wait.ts'
import { StandaloneError } from './error.ts'
import type { Pod } from './node/types.ts'

interface EventObject extends KubeObject {
  readonly type?: string
  readonly message?: string
  readonly lastTimestamp?: string
  readonly involvedObject?: { readonly uid?: string }
}

const mostPods = 3
const logLines = 12

/** Throws the error again; where it tells of pods that are not ready, with a few lines for each of the first ones. */
export async function explainFailure(
  error: unknown,
  client: KubeClient,
  namespaces: ReadonlySet<string>,
): Promise<never> {
  if (!(error instanceof StandaloneError) || error.code !== 'NOT_READY') throw error
  const { items } = await client.list<Pod>(resources.pods)
  const unready = items.filter((pod) => namespaces.has(pod.metadata.namespace ?? '') && unreadiness(pod) !== undefined)
  const parts = await Promise.all(unready.slice(0, mostPods).map((pod) => explain(client, pod)))
  throw new StandaloneError(error.code, [error.message, ...parts].join('\n'), { cause: error })
}

async function explain(client: KubeClient, pod: Pod): Promise<string> {
  const { namespace = '', name } = pod.metadata
  const said = new Set<string>()
  for (const { state } of pod.status?.containerStatuses ?? []) {
    if (state?.waiting?.message) said.add(state.waiting.message)
  }
  const events = await client.list<EventObject>(resources.events, { namespace }).catch(() => ({ items: [] }))
  const last = events.items
    .filter(({ type, involvedObject }) => type === 'Warning' && involvedObject?.uid === pod.metadata.uid)
    .sort((a, b) => ((a.lastTimestamp ?? '') < (b.lastTimestamp ?? '') ? -1 : 1))
    .at(-1)
  if (last?.message) said.add(last.message)
  const log = (await logOf(client, pod, true)) || (await logOf(client, pod, false))
  const lines = [...said, ...(log === '' ? [] : ['the end of its log:', ...log.split('\n')])]
  return [`${namespace}/${name}:`, ...lines.map((line) => `  ${line}`)].join('\n')
}

async function logOf(client: KubeClient, pod: Pod, previous: boolean): Promise<string> {
  const { namespace = '', name } = pod.metadata
  const container = pod.spec?.containers[0]?.name ?? ''
  const query = new URLSearchParams({ container, tailLines: String(logLines), ...(previous && { previous: 'true' }) })
  try {
    const response = await client.request(`/api/v1/namespaces/${namespace}/pods/${name}/log?${query}`)
    const text = await response.text()
    return response.ok ? text.trimEnd() : ''
  } catch {
    return ''
  }
}
