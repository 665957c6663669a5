// Waits for what an object of an API server becomes.
import type { KubeObject, ObjectKey, Resource } from '../../src/api/index.ts'
import type { Informer, KubeClient } from '../../src/kube/index.ts'

/** Resolves with what `find` finds first in the object; rejects after `withinMs`. */
export async function untilObject<T extends KubeObject, R>(
  client: KubeClient,
  resource: Resource,
  key: ObjectKey,
  find: (object: T | undefined) => R | undefined,
  withinMs = 10_000,
): Promise<R> {
  const informer: Informer<T> = client.informer(
    resource,
    key.namespace === undefined ? {} : { namespace: key.namespace },
  )
  const { promise, resolve, reject } = Promise.withResolvers<R>()
  const timer = setTimeout(() => reject(new Error(`not true in time: ${JSON.stringify(informer.get(key))}`)), withinMs)
  const look = (): void => {
    const found = find(informer.get(key))
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
