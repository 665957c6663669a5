// What one stream watches of one type, and which changes concern it.
import type { EncodedResource, ResourceChange, ResourceSource, XdsClient } from '../types.ts'

/** A type as the server offers it. */
export interface ServedType {
  readonly source: ResourceSource
  /** What an empty list of names means in the state-of-the-world protocol: everything, or nothing. */
  readonly isWildcard: boolean
  /** `last`: removals of this type wait until the changes of all types are sent. */
  readonly removals?: 'with-changes' | 'last'
  /** A type of which what is watched is sent again after each answer to this one. */
  readonly followedBy?: string
  /** Throws a StreamError for clients that may not have this type. */
  readonly admit?: (client: XdsClient) => void
}

export interface Watch {
  readonly type: ServedType
  wildcard: boolean
  /** Names and keys subscribed to; not kept for wildcard watches, whatever their number. */
  names: Set<string>
  /** Changed names to be sent once the stream is writable. */
  readonly pending: Set<string>
  alwaysRespond: boolean
  nonceSent: string
  nonceAcked: string
  lastError: string | undefined
  lastSentAt: Date | undefined
}

export function createWatch(type: ServedType, wildcard: boolean, names: Iterable<string>): Watch {
  return {
    type,
    wildcard,
    names: new Set(wildcard ? [] : names),
    pending: new Set(),
    alwaysRespond: false,
    nonceSent: '',
    nonceAcked: '',
    lastError: undefined,
    lastSentAt: undefined,
  }
}

/** Notes what of the changes is to be sent to this watch. */
export function noteChanges(watch: Watch, changes: Iterable<ResourceChange>, nodeName: string): void {
  for (const change of changes) if (concerns(watch, change, nodeName)) watch.pending.add(change.name)
}

function concerns(watch: Watch, change: ResourceChange, nodeName: string): boolean {
  if (watch.wildcard || watch.names.has(change.name)) return true
  if (watch.type.source.lookup === undefined) return false
  return change.keys.some((key) => watch.names.has(key)) || (nodeName !== '' && change.nodes.includes(nodeName))
}

/** What is sent: resources as they are now, and the names of those that are gone. */
export interface Content {
  readonly resources: readonly EncodedResource[]
  readonly removed: readonly string[]
}

/** A push is split when it grows beyond this. */
const pushBytes = 4 * 1024 * 1024

export type PushPart = 'all' | 'changes' | 'removals'

export function hasPending(watch: Watch, part: PushPart): boolean {
  if (part === 'all') return watch.pending.size > 0
  for (const name of watch.pending) {
    if ((watch.type.source.get(name) === undefined) === (part === 'removals')) return true
  }
  return false
}

/** Takes the pending names of one part and gives their content of this moment; undefined when there are none. */
export function takePending(watch: Watch, part: PushPart): Content | undefined {
  const resources: EncodedResource[] = []
  const removed: string[] = []
  let bytes = 0
  for (const name of watch.pending) {
    if (bytes > pushBytes) break
    const resource = watch.type.source.get(name)
    if (part === (resource === undefined ? 'changes' : 'removals')) continue
    watch.pending.delete(name)
    if (resource === undefined) {
      removed.push(name)
      bytes += name.length
    } else {
      resources.push(resource)
      bytes += resource.body.byteLength
    }
  }
  if (!watch.wildcard && watch.type.source.lookup !== undefined) for (const { name } of resources) watch.names.add(name)
  return resources.length + removed.length === 0 ? undefined : { resources, removed: removed.sort() }
}
