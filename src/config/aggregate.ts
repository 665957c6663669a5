// Several config sources as one: of objects with one key that of the first source counts.
import type { KubeObject, ObjectKey, Resource } from '../api/index.ts'
import type { Informer, ObjectChange } from '../kube/index.ts'
import { type ConfigSource, nameKey } from './source.ts'

/** At least one source, the most important first. */
export function aggregateSources(sources: readonly ConfigSource[]): ConfigSource {
  const [only] = sources
  if (only !== undefined && sources.length === 1) return only
  return { informer: <T extends KubeObject>(resource: Resource) => aggregateInformers<T>(sources, resource) }
}

function aggregateInformers<T extends KubeObject>(sources: readonly ConfigSource[], resource: Resource): Informer<T> {
  const stack = new AsyncDisposableStack()
  const parts = sources.map((source) => stack.use(source.informer<T>(resource)))
  const counting = new Map<string, T>()
  const listeners = new Set<(changes: readonly ObjectChange<T>[]) => void>()

  function take(key: ObjectKey): ObjectChange<T> | undefined {
    const name = nameKey(key)
    const old = counting.get(name)
    let object: T | undefined
    for (const part of parts) object ??= part.get(key)
    if (object === old) return undefined
    if (object === undefined) {
      counting.delete(name)
      return old === undefined ? undefined : { kind: 'deleted', object: old }
    }
    counting.set(name, object)
    return old === undefined ? { kind: 'added', object } : { kind: 'updated', object, old }
  }

  for (const part of parts) {
    stack.defer(
      part.subscribe((changes) => {
        const own = changes.map(({ object }) => take(object.metadata)).filter((change) => change !== undefined)
        if (own.length > 0) for (const listener of [...listeners]) listener(own)
      }),
    )
  }

  return {
    synced: Promise.all(parts.map(({ synced }) => synced)).then(() => undefined),
    get: (key) => counting.get(nameKey(key)),
    list: () => [...counting.values()],
    subscribe(listener) {
      listeners.add(listener)
      if (counting.size > 0) listener([...counting.values()].map((object) => ({ kind: 'added', object })))
      return () => listeners.delete(listener)
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}
