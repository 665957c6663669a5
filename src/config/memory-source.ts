// A config source that is written to directly: for tests, and for programs that bring their own configuration.
import type { KubeObject, ObjectKey, Resource } from '../api/index.ts'
import { createObjectStore } from './object-store.ts'
import type { ConfigSource } from './source.ts'

export class ConfigStoreError extends Error {
  readonly code: 'ALREADY_EXISTS' | 'NOT_FOUND' | 'CONFLICT' | 'UNKNOWN_TYPE'

  constructor(code: ConfigStoreError['code'], message: string) {
    super(message)
    this.name = 'ConfigStoreError'
    this.code = code
  }
}

export interface MemorySource extends ConfigSource {
  get(resource: Resource, key: ObjectKey): KubeObject | undefined
  /** Each write returns the object as it is held, with its new resource version. They throw a ConfigStoreError. */
  create(object: KubeObject): KubeObject
  /** A resource version in the object must be that of the object held. */
  update(object: KubeObject): KubeObject
  delete(resource: Resource, key: ObjectKey, resourceVersion?: string): void
}

/** Holds objects of these kinds and no others. It counts as read from the start. */
export function createMemorySource(kinds: readonly Resource[]): MemorySource {
  const store = createObjectStore()
  store.markSynced()
  let version = 0

  function resourceOf({ apiVersion, kind }: KubeObject): Resource {
    const resource = kinds.find((one) => one.kind === kind && apiVersion.split('/')[0] === (one.group || one.version))
    if (resource === undefined) throw new ConfigStoreError('UNKNOWN_TYPE', `unknown type ${apiVersion} ${kind}`)
    return resource
  }

  function put(object: KubeObject): KubeObject {
    version += 1
    const held = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } }
    store.change([{ kind: 'set', object: held }])
    return held
  }

  function existing(resource: Resource, key: ObjectKey, resourceVersion: string | undefined): void {
    const held = store.get(resource, key)
    if (held === undefined) throw new ConfigStoreError('NOT_FOUND', 'item not found')
    if (resourceVersion !== undefined && resourceVersion !== held.metadata.resourceVersion) {
      throw new ConfigStoreError('CONFLICT', 'conflicting resource version, try again')
    }
  }

  return {
    informer: (resource) => store.informer(resource),
    get: (resource, key) => store.get(resource, key),
    create(object) {
      if (store.get(resourceOf(object), object.metadata) !== undefined) {
        throw new ConfigStoreError('ALREADY_EXISTS', 'item already exists')
      }
      return put(object)
    },
    update(object) {
      existing(resourceOf(object), object.metadata, object.metadata.resourceVersion)
      return put(object)
    },
    delete(resource, key, resourceVersion) {
      existing(resource, key, resourceVersion)
      store.change([{ kind: 'delete', of: resource, key }])
    },
  }
}
