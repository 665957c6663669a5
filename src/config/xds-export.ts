// The objects of one kind as an xDS type, for control planes that take their configuration from this one.
import { isDeepStrictEqual } from 'node:util'
import type { KubeObject, Resource } from '../api/index.ts'
import type { Change, Collection } from '../collections/index.ts'
import type { EncodedResource, ResourceChange, ResourceSource } from '../xds/index.ts'
import { apiTypeUrl, contentVersion, encodeIstioResource, istioResourceType } from './istio-resource.ts'
import { nameKey } from './source.ts'

/** Objects are encoded when somebody asks for them. `objectOf` leaves out what is not to be passed on. */
export function exportedKind<T>(
  resource: Resource,
  collection: Collection<T>,
  objectOf: (value: T) => KubeObject | undefined,
): ResourceSource {
  const encoded = new WeakMap<KubeObject, EncodedResource>()
  const names = new Map<string, string>()

  function encode(value: T): EncodedResource | undefined {
    const object = objectOf(value)
    if (object === undefined) return undefined
    let known = encoded.get(object)
    if (known === undefined) {
      const body = encodeIstioResource(object)
      const name = nameKey(object.metadata)
      known = { name, aliases: [], version: contentVersion(body), body, bodyType: istioResourceType }
      encoded.set(object, known)
    }
    return known
  }

  function changeOf(change: Change<T>): ResourceChange[] {
    if (change.kind === 'updated' && isSame(objectOf(change.old), objectOf(change.new))) return []
    const old = change.kind === 'added' ? undefined : encode(change.old)
    const next = change.kind === 'removed' ? undefined : encode(change.new)
    const name = (next ?? old)?.name
    if (name === undefined) return []
    return [
      {
        name,
        ...(old === undefined ? {} : { old }),
        ...(next === undefined ? {} : { new: next }),
      },
    ]
  }

  collection.subscribe((changes) => {
    for (const change of changes) {
      const object = objectOf(change.kind === 'removed' ? change.old : change.new)
      if (object === undefined) continue
      if (change.kind === 'removed') names.delete(nameKey(object.metadata))
      else names.set(nameKey(object.metadata), change.key)
    }
  })

  return {
    typeUrl: apiTypeUrl(resource),
    get synced() {
      return collection.synced
    },
    *list() {
      for (const [, value] of collection.entries()) {
        const resource = encode(value)
        if (resource !== undefined) yield resource
      }
    },
    get(name) {
      const key = names.get(name)
      const value = key === undefined ? undefined : collection.get(key)
      return value === undefined ? undefined : encode(value)
    },
    // The present content is no change.
    subscribe(listener) {
      let isFirst = true
      const end = collection.subscribe((changes) => {
        if (!isFirst) listener(changes.flatMap(changeOf))
      })
      isFirst = false
      return end
    },
  }
}

/** Whether nothing differs but the version and what is not passed on, such as the status. */
function isSame(a: KubeObject | undefined, b: KubeObject | undefined): boolean {
  const passedOn = (object: KubeObject | undefined) => ({
    spec: object?.spec,
    labels: object?.metadata.labels,
    annotations: object?.metadata.annotations,
    created: object?.metadata.creationTimestamp,
  })
  return (a === undefined) === (b === undefined) && isDeepStrictEqual(passedOn(a), passedOn(b))
}
