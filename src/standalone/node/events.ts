// Events about pods and nodes, written to the API. Equal events in a row become one with a count.
import { type KubeObject, resources } from '../../api/index.ts'
import type { KubeClient } from '../../kube/index.ts'

export interface EventRecorder {
  /** Never rejects and never waits: an event that cannot be written is dropped with a line in the log. */
  record(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void
}

export function createEventRecorder(
  client: KubeClient,
  node: string,
  component: string,
  log: (message: string) => void,
): EventRecorder {
  const known = new Map<string, { name: string; count: number }>()
  let queue: Promise<void> = Promise.resolve()

  const write = async (object: KubeObject, type: string, reason: string, message: string) => {
    const namespace = object.metadata.namespace ?? 'default'
    const key = [object.metadata.uid, type, reason, message].join('\n')
    const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
    const before = known.get(key)
    if (before !== undefined) {
      before.count += 1
      const body = { count: before.count, lastTimestamp: now }
      await client.patch(resources.events, { namespace, name: before.name }, { kind: 'merge', body })
      return
    }
    const name = `${object.metadata.name}.${Date.now().toString(16)}${Math.floor(Math.random() * 65536).toString(16)}`
    const event: KubeObject & Record<string, unknown> = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace },
      involvedObject: {
        apiVersion: object.apiVersion,
        kind: object.kind,
        name: object.metadata.name,
        ...(object.metadata.namespace && { namespace: object.metadata.namespace }),
        ...(object.metadata.uid && { uid: object.metadata.uid }),
      },
      type,
      reason,
      message,
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component, host: node },
      reportingComponent: component,
      reportingInstance: node,
    }
    await client.create(resources.events, event)
    known.set(key, { name, count: 1 })
    if (known.size > 1000) known.delete(known.keys().next().value ?? '')
  }

  return {
    record(object, type, reason, message) {
      queue = queue
        .then(() => write(object, type, reason, message))
        .catch((error: Error) => {
          known.delete([object.metadata.uid, type, reason, message].join('\n'))
          log(`event ${reason} of ${object.metadata.name} not written: ${error.message}`)
        })
    },
  }
}
