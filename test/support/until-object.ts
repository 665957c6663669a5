// Waits for what objects of an API server become.
import type { KubeObject, ObjectKey, Resource } from '../../src/api/index.ts'
import type { Informer, KubeClient } from '../../src/kube/index.ts'

export interface Wait<T extends KubeObject> {
  /** Whose objects are seen; those of all without one. */
  readonly namespace?: string | undefined
  readonly withinMs: number
  /** What to say when the time is over. */
  complaint(seen: Informer<T>): string
}

/** Resolves with what `find` finds first among the objects of the kind; rejects with the complaint after `withinMs`. */
export async function untilObjects<T extends KubeObject, R>(
  client: KubeClient,
  resource: Resource,
  find: (seen: Informer<T>) => R | undefined,
  { namespace, withinMs, complaint }: Wait<T>,
): Promise<R> {
  const informer: Informer<T> = client.informer(resource, namespace === undefined ? {} : { namespace })
  const { promise, resolve, reject } = Promise.withResolvers<R>()
  const timer = setTimeout(() => reject(new Error(complaint(informer))), withinMs)
  const look = (): void => {
    const found = find(informer)
    if (found !== undefined) resolve(found)
  }
  const unsubscribe = informer.subscribe(look)
  void informer.synced.then(look, reject)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    unsubscribe()
    await informer[Symbol.asyncDispose]()
  }
}

/** Resolves with what `find` finds first in the object; rejects after `withinMs`. */
export function untilObject<T extends KubeObject, R>(
  client: KubeClient,
  resource: Resource,
  key: ObjectKey,
  find: (object: T | undefined) => R | undefined,
  withinMs = 10_000,
): Promise<R> {
  return untilObjects<T, R>(client, resource, (seen) => find(seen.get(key)), {
    namespace: key.namespace,
    withinMs,
    complaint: (seen) => `not true in time: ${JSON.stringify(seen.get(key))}`,
  })
}
