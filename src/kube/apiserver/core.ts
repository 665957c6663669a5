// What all operations share: the store, the kinds, admission and the clock; and how objects pass between a served version and the stored one.
import { apiVersionOf, type KindDefinition, type KubeObject } from '../../api/index.ts'
import { storageOf, storedApiVersion } from './kinds.ts'
import type { ServiceAddresses } from './services/addresses.ts'
import { type Entry, serialize } from './store/entry.ts'
import type { Store } from './store/store.ts'
import type { AdmissionPlugin, AuthenticatedUser, KindRegistry, ObjectReader } from './types.ts'

export interface Core {
  readonly store: Store
  readonly kinds: KindRegistry
  readonly admission: readonly AdmissionPlugin[]
  readonly addresses: ServiceAddresses
  readonly now: () => Date
}

/** The server acting on its own behalf. */
export const serverUser: AuthenticatedUser = {
  name: 'system:apiserver',
  groups: ['system:masters', 'system:authenticated'],
}

/** The stored object as the kind's version shows it; shared or an own copy: do not mutate. */
export function present(kind: KindDefinition, entry: Entry): KubeObject {
  const { object } = entry
  if (object.apiVersion === apiVersionOf(kind) && object.kind === kind.kind) return object
  if (kind.fromStorage !== undefined) return kind.fromStorage(entry.clone())
  return { ...object, apiVersion: apiVersionOf(kind), kind: kind.kind }
}

/** The same as JSON text. */
export function presentJson(kind: KindDefinition, entry: Entry): string {
  if (entry.json.startsWith(`{"apiVersion":"${apiVersionOf(kind)}","kind":"${kind.kind}"`)) return entry.json
  return serialize(present(kind, entry))
}

/** The form in which an object of the kind is stored. */
export function toStored(kind: KindDefinition, object: KubeObject): KubeObject {
  if (kind.toStorage !== undefined) return kind.toStorage(object)
  return { ...object, apiVersion: storedApiVersion(kind), kind: kind.storage?.kind ?? kind.kind }
}

export function findEntry(core: Core, kind: KindDefinition, namespace: string, name: string): Entry | undefined {
  return core.store.get(storageOf(kind), namespace, name)
}

export function objectReader(store: Store): ObjectReader {
  const resource = (group: string, plural: string) => `${group}/${plural}`
  return {
    get: (group, plural, key) => store.get(resource(group, plural), key.namespace ?? '', key.name)?.object,
    list: (group, plural, namespace) => store.list(resource(group, plural), namespace).map((entry) => entry.object),
    subscribe(group, plural, listener) {
      const wanted = resource(group, plural)
      for (const entry of store.list(wanted)) listener({ kind: 'added', object: entry.object })
      return store.onChange((change) => {
        if (change.resource !== wanted) return
        const old = change.previous?.object
        listener({ kind: change.kind, object: change.entry.object, ...(old === undefined ? {} : { old }) })
      })
    },
  }
}
