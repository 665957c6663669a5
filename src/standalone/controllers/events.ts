// Events that tell users what a controller did, or why it could not.
import { createHash } from 'node:crypto'
import { type KubeObject, resources } from '../../api/index.ts'
import type { Cluster } from './cluster.ts'
import { timestamp } from './objects.ts'

export interface Happening {
  readonly type: 'Normal' | 'Warning'
  /** One word in CamelCase. */
  readonly reason: string
  readonly message: string
  /** Who says so, such as `deployment-controller`. */
  readonly component: string
}

type Event = KubeObject & Record<string, unknown> & { readonly count?: number }

/** Writes the event; the same one again raises its count. Resolves also when it could not be written: work must not hang on it. */
export async function recordEvent(cluster: Cluster, object: KubeObject, happening: Happening): Promise<void> {
  try {
    await write(cluster, object, happening)
  } catch (error) {
    cluster.log.debug('event not written', { reason: happening.reason, error: String(error) })
  }
}

async function write(
  cluster: Cluster,
  object: KubeObject,
  { type, reason, message, component }: Happening,
): Promise<void> {
  const { namespace = 'default', name, uid } = object.metadata
  const identity = createHash('sha256')
    .update(JSON.stringify([uid, type, reason, message, component]))
    .digest('hex')
  const key = { namespace, name: `${name.slice(0, 230)}.${identity.slice(0, 16)}` }
  const now = timestamp()
  const event: Event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: key,
    involvedObject: {
      apiVersion: object.apiVersion,
      kind: object.kind,
      namespace: object.metadata.namespace,
      name,
      uid,
      resourceVersion: object.metadata.resourceVersion,
    },
    type,
    reason,
    message,
    source: { component },
    reportingComponent: component,
    reportingInstance: '',
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  }
  try {
    await cluster.client.create(resources.events, event)
  } catch (error) {
    if ((error as { reason?: unknown }).reason !== 'AlreadyExists') throw error
    const existing = await cluster.client.get<Event>(resources.events, key)
    const body = { count: (existing?.count ?? 1) + 1, lastTimestamp: now }
    await cluster.client.patch(resources.events, key, { kind: 'merge', body })
  }
}
