// HTTP requests of commands to what runs in pods: the control plane's debug pages, a proxy's admin pages.
import { type KubeObject, resources } from '../api/index.ts'
import { type Connection, clientOf, type KubeClient, requestPod } from '../kube/index.ts'
import { UsageError } from './connection.ts'

export interface MeshPod {
  readonly name: string
  readonly namespace: string
  readonly node: string
  readonly labels: Readonly<Record<string, string>>
}

type Pod = KubeObject<{ nodeName?: string }, { phase?: string }>

/** Runs an action with a client of the connection and closes it afterwards. */
export async function withClientOf<T>(connection: Connection, action: (client: KubeClient) => Promise<T>): Promise<T> {
  const client = clientOf(connection, { userAgent: 'lateen' })
  try {
    return await action(client)
  } finally {
    await client.close()
  }
}

/** The running pods that the labels select, by name. */
export async function runningPods(client: KubeClient, namespace: string, labelSelector: string): Promise<MeshPod[]> {
  const { items } = await client.list<Pod>(resources.pods, { namespace, labelSelector })
  return items
    .filter(({ status }) => status?.phase === 'Running')
    .map(meshPodOf)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

export async function podOf(client: KubeClient, namespace: string, name: string): Promise<MeshPod> {
  const pod = await client.get<Pod>(resources.pods, { namespace, name })
  if (pod === undefined) {
    throw new UsageError(`pod ${name} does not exist in namespace ${namespace}: expected a pod as NAME.NAMESPACE`)
  }
  return meshPodOf(pod)
}

function meshPodOf({ metadata, spec }: Pod): MeshPod {
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    node: spec?.nodeName ?? '',
    labels: metadata.labels ?? {},
  }
}

/** The JSON that a page in the pod answers with. Throws a UsageError for any other answer than 200. */
export async function jsonFromPod(
  connection: Connection,
  { namespace, name }: Pick<MeshPod, 'namespace' | 'name'>,
  port: number,
  path: string,
): Promise<unknown> {
  const { status, body } = await requestPod(connection, { namespace, pod: name, port }, { path })
  if (status !== 200) {
    throw new UsageError(`pod ${namespace}/${name}, port ${port}, ${path}: HTTP ${status}: ${body.trim()}`)
  }
  try {
    return JSON.parse(body)
  } catch {
    throw new UsageError(`pod ${namespace}/${name}, port ${port}, ${path}: the answer is no JSON`)
  }
}

/** A port as a flag tells it. Throws a UsageError. */
export function portOf(flag: string, text: string): number {
  const port = Number(text)
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port
  throw new UsageError(`${flag}: port number ${text} must be in the range 1..65535`)
}

/** `name.namespace` in two; without a dot the namespace is the given one. */
export function splitPodName(target: string, namespace: string): { readonly name: string; readonly namespace: string } {
  const dot = target.lastIndexOf('.')
  return dot <= 0 ? { name: target, namespace } : { name: target.slice(0, dot), namespace: target.slice(dot + 1) }
}
