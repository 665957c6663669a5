// The frame of a controller: changes of objects become keys in a work queue.
import { type KubeObject, type Resource, resources } from '../../api/index.ts'
import type { Informer, ObjectChange } from '../../kube/index.ts'
import type { Cluster } from './cluster.ts'
import { recordEvent } from './events.ts'
import { controllerOf, isSame, keyOf, keyText, type Pod } from './objects.ts'
import { createWorkQueue, type WorkQueue } from './queue.ts'

/** A source of work: objects of an informer, and the keys that a change of one makes due. */
export interface Source {
  readonly subscribe: (add: (key: string) => void) => () => void
}

export function source<T extends KubeObject>(
  informer: Informer<T>,
  keysOf: (object: T) => Iterable<string>,
  matters: (change: ObjectChange<T>) => boolean = () => true,
): Source {
  return {
    subscribe: (add) =>
      informer.subscribe((changes) => {
        for (const change of changes) {
          if (!matters(change)) continue
          for (const key of keysOf(change.object)) add(key)
          if (change.kind === 'updated') for (const key of keysOf(change.old)) add(key)
        }
      }),
  }
}

/** The objects of the informer themselves. */
export function own<T extends KubeObject>(informer: Informer<T>): Source {
  return source(informer, (object) => [keyText(object)])
}

/** The owners of this kind of the informer's objects. */
export function ownersOf<T extends KubeObject>(informer: Informer<T>, kind: string): Source {
  return source(informer, (object) => {
    const owner = controllerOf(object)
    return owner?.kind === kind ? [`${object.metadata.namespace}/${owner.name}`] : []
  })
}

export interface ControllerOptions {
  readonly name: string
  readonly sources: readonly Source[]
  readonly work: (key: string, queue: WorkQueue) => Promise<number | undefined>
  readonly concurrency?: number
}

export function startController(cluster: Cluster, options: ControllerOptions): AsyncDisposable {
  const queue: WorkQueue = createWorkQueue({
    name: options.name,
    log: cluster.log,
    ...(options.concurrency === undefined ? {} : { concurrency: options.concurrency }),
    work: (key) => options.work(key, queue),
  })
  const subscriptions = options.sources.map(({ subscribe }) => subscribe((key) => queue.add(key)))
  return {
    async [Symbol.asyncDispose]() {
      for (const unsubscribe of subscriptions) unsubscribe()
      await queue[Symbol.asyncDispose]()
    },
  }
}

/** Writes the status when it differs from the one the object has. */
export async function writeStatus<T extends KubeObject>(
  cluster: Cluster,
  resource: Resource,
  object: T,
  status: T['status'],
): Promise<void> {
  if (isSame(object.status, status)) return
  await cluster.client.replace(resource, { ...object, status }, { subresource: 'status' })
}

/** Creates a pod of a controller's object, and tells so or why not. */
export async function createPod(cluster: Cluster, owner: KubeObject, pod: Pod, component: string): Promise<void> {
  try {
    const created = await cluster.client.create(resources.pods, pod)
    cluster.ownedPods.created(created)
    const message = `Created pod: ${created.metadata.name}`
    await recordEvent(cluster, owner, { type: 'Normal', reason: 'SuccessfulCreate', message, component })
  } catch (error) {
    const message = `Error creating: ${error instanceof Error ? error.message : String(error)}`
    await recordEvent(cluster, owner, { type: 'Warning', reason: 'FailedCreate', message, component })
    throw error
  }
}

/** Deletes an object that still is the one meant; gone already is fine. */
export async function deleteExactly(cluster: Cluster, resource: Resource, object: KubeObject): Promise<void> {
  const { uid } = object.metadata
  try {
    await cluster.client.delete(resource, keyOf(keyText(object)), {
      propagationPolicy: 'Background',
      ...(uid === undefined ? {} : { preconditions: { uid } }),
    })
  } catch (error) {
    if ((error as { code?: unknown }).code !== 409) throw error
  }
}
