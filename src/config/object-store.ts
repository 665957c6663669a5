// Objects held in memory, by kind, with an informer for each kind: what the sources stand on that are no API server.
import { isDeepStrictEqual } from 'node:util'
import type { KubeObject, ObjectKey, Resource } from '../api/index.ts'
import type { Informer, ObjectChange } from '../kube/index.ts'
import { type ConfigSource, kindKey, kindOf, nameKey } from './source.ts'

export type StoreChange =
  | { readonly kind: 'set'; readonly object: KubeObject }
  | { readonly kind: 'delete'; readonly of: Pick<Resource, 'group' | 'kind'>; readonly key: ObjectKey }

export interface ObjectStore extends ConfigSource {
  get(of: Pick<Resource, 'group' | 'kind'>, key: ObjectKey): KubeObject | undefined
  /** Everything, of every kind. */
  list(): readonly KubeObject[]
  /** The changes of one kind are told together. An object equal to the one held is no change. */
  change(changes: readonly StoreChange[]): void
  /** Makes the content exactly these objects. */
  replaceAll(objects: readonly KubeObject[]): void
  /** The content is complete. */
  markSynced(): void
}

type Listener = (changes: readonly ObjectChange<KubeObject>[]) => void

interface Shelf {
  readonly objects: Map<string, KubeObject>
  readonly listeners: Set<Listener>
}

export function createObjectStore(): ObjectStore {
  const shelves = new Map<string, Shelf>()
  const synced = Promise.withResolvers<void>()

  function shelf(kind: string): Shelf {
    const known = shelves.get(kind)
    if (known !== undefined) return known
    const created: Shelf = { objects: new Map(), listeners: new Set() }
    shelves.set(kind, created)
    return created
  }

  function change(changes: readonly StoreChange[]): void {
    const told = new Map<string, ObjectChange<KubeObject>[]>()
    for (const one of changes) {
      const kind = one.kind === 'set' ? kindOf(one.object) : kindKey(one.of)
      const happened = one.kind === 'set' ? set(kind, one.object) : remove(kind, nameKey(one.key))
      if (happened === undefined) continue
      const list = told.get(kind)
      if (list === undefined) told.set(kind, [happened])
      else list.push(happened)
    }
    for (const [kind, list] of told) for (const listener of [...shelf(kind).listeners]) listener(list)
  }

  function set(kind: string, object: KubeObject): ObjectChange<KubeObject> | undefined {
    const { objects } = shelf(kind)
    const key = nameKey(object.metadata)
    const old = objects.get(key)
    if (old !== undefined && isDeepStrictEqual(old, object)) return undefined
    objects.set(key, object)
    return old === undefined ? { kind: 'added', object } : { kind: 'updated', object, old }
  }

  function remove(kind: string, key: string): ObjectChange<KubeObject> | undefined {
    const { objects } = shelf(kind)
    const object = objects.get(key)
    objects.delete(key)
    return object === undefined ? undefined : { kind: 'deleted', object }
  }

  return {
    get: (of, key) => shelves.get(kindKey(of))?.objects.get(nameKey(key)),
    list: () => [...shelves.values()].flatMap(({ objects }) => [...objects.values()]),
    change,
    replaceAll(objects) {
      const wanted = new Set(objects.map((object) => `${kindOf(object)} ${nameKey(object.metadata)}`))
      const gone: StoreChange[] = []
      for (const [kind, { objects: held }] of shelves) {
        const [group = '', name = ''] = kind.split('/')
        for (const [key, { metadata }] of held) {
          if (!wanted.has(`${kind} ${key}`)) gone.push({ kind: 'delete', of: { group, kind: name }, key: metadata })
        }
      }
      change([...gone, ...objects.map((object) => ({ kind: 'set', object }) as const)])
    },
    markSynced: () => synced.resolve(),
    informer<T extends KubeObject>(resource: Resource): Informer<T> {
      // A shelf holds the objects of one kind alone.
      const { objects, listeners } = shelf(kindKey(resource)) as unknown as {
        readonly objects: Map<string, T>
        readonly listeners: Set<(changes: readonly ObjectChange<T>[]) => void>
      }
      const own = new Set<(changes: readonly ObjectChange<T>[]) => void>()
      return {
        synced: synced.promise,
        get: (key) => objects.get(nameKey(key)),
        list: () => [...objects.values()],
        subscribe(listener) {
          listeners.add(listener)
          own.add(listener)
          if (objects.size > 0) listener([...objects.values()].map((object) => ({ kind: 'added', object })))
          return () => {
            listeners.delete(listener)
            own.delete(listener)
          }
        },
        async [Symbol.asyncDispose]() {
          for (const listener of own) listeners.delete(listener)
        },
      }
    },
  }
}
