// The cached objects of an informer, and the exact changes that a list or an event makes to them.
import type { KubeObject, ObjectKey } from '../api/index.ts'
import type { ObjectChange, WatchEvent } from './types.ts'

export interface InformerStore<T extends KubeObject> {
  get(key: ObjectKey): T | undefined
  list(): T[]
  readonly size: number
  /** Takes a complete list; what is cached and not listed was deleted meanwhile. */
  replaceAll(items: readonly T[]): ObjectChange<T>[]
  apply(events: readonly WatchEvent<T>[]): ObjectChange<T>[]
}

/** Takes listed objects as they are, and of those in events what `keep` gives. */
export function createInformerStore<T extends KubeObject>(
  keep: (object: T) => T = (object) => object,
): InformerStore<T> {
  const objects = new Map<string, T>()

  function put(object: T, changes: ObjectChange<T>[]): void {
    const kept = withoutManagedFields(object)
    const key = keyOf(kept.metadata)
    const old = objects.get(key)
    objects.set(key, kept)
    if (old === undefined) {
      changes.push({ kind: 'added', object: kept })
    } else if (old.metadata.uid !== kept.metadata.uid) {
      changes.push({ kind: 'deleted', object: old }, { kind: 'added', object: kept })
    } else if (old.metadata.resourceVersion !== kept.metadata.resourceVersion) {
      changes.push({ kind: 'updated', object: kept, old })
    }
  }

  function remove(key: string, last: T | undefined, changes: ObjectChange<T>[]): void {
    const old = objects.get(key)
    if (old === undefined) return
    objects.delete(key)
    changes.push({ kind: 'deleted', object: last === undefined ? old : withoutManagedFields(last) })
  }

  return {
    get: (key) => objects.get(keyOf(key)),
    list: () => [...objects.values()],
    get size() {
      return objects.size
    },
    replaceAll(items) {
      const changes: ObjectChange<T>[] = []
      const listed = new Set(items.map((item) => keyOf(item.metadata)))
      for (const key of [...objects.keys()]) {
        if (!listed.has(key)) remove(key, undefined, changes)
      }
      for (const item of items) put(item, changes)
      return changes
    },
    apply(events) {
      const changes: ObjectChange<T>[] = []
      for (const event of events) {
        if (event.type === 'ADDED' || event.type === 'MODIFIED') put(keep(event.object), changes)
        else if (event.type === 'DELETED') remove(keyOf(event.object.metadata), keep(event.object), changes)
      }
      return changes
    },
  }
}

function keyOf(key: ObjectKey): string {
  return `${key.namespace ?? ''}/${key.name}`
}

/** They are often half of an object's size, and only the server has a use for them. */
function withoutManagedFields<T extends KubeObject>(object: T): T {
  if (object.metadata.managedFields !== undefined) delete object.metadata.managedFields
  return object
}
