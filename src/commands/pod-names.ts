// Pods as people name them: by their name, or by what runs them.
import type { KubeObject } from '../api/index.ts'
import { resources } from '../api/index.ts'
import type { KubeClient } from '../kube/index.ts'
import { UsageError } from './connection.ts'
import { findResource } from './resource-names.ts'

interface Selecting {
  readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> } & Readonly<Record<string, unknown>>
}

/** The name of the pod meant by `reviews-v1-abc`, `pod/reviews-v1-abc`, `deploy/reviews-v1`, `svc/reviews`. Throws a UsageError. */
export async function podNameOf(client: KubeClient, namespace: string, target: string): Promise<string> {
  const [kind, name] = target.includes('/') ? target.split('/', 2) : ['pod', target]
  if (kind === undefined || !name) throw new UsageError(`"${target}": expected a pod's name, or KIND/NAME`)
  const resource = await findResource(client, kind)
  const owner = await client.get<KubeObject<Selecting>>(resource, { namespace, name })
  if (owner === undefined) {
    throw new UsageError(`${resource.kind} ${name} does not exist in namespace ${namespace} (-n names another)`)
  }
  if (resource.kind === 'Pod') return name
  const selector = owner.spec?.selector
  const labels =
    selector?.matchLabels ?? (resource.kind === 'Service' ? (selector as Record<string, string>) : undefined)
  if (labels === undefined || Object.keys(labels).length === 0) {
    throw new UsageError(`${resource.kind} ${name} does not select pods by labels`)
  }
  const labelSelector = Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
  const { items } = await client.list<KubeObject<unknown, { phase?: string }>>(resources.pods, {
    namespace,
    labelSelector,
  })
  const running = items.filter(({ status }) => status?.phase === 'Running')
  const pod = running[0] ?? items[0]
  if (pod === undefined) throw new UsageError(`${resource.kind} ${name} has no pods in namespace ${namespace}`)
  if (items.length > 1)
    process.stderr.write(`${resource.kind} ${name} has ${items.length} pods, this is of ${pod.metadata.name}\n`)
  return pod.metadata.name
}
