// What one stream watches of one type, and which changes concern it.
import type { EncodedResource, ResourceChange, ResourceSource, XdsClient } from '../types.ts'
import { type Content, type PushPart, pushBytes, type SharedPush, sharedPushOf } from './shared-content.ts'

export type { Content, PushPart } from './shared-content.ts'

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
  /** Everything there is, put together once for all who ask. */
  readonly everything?: () => Content
}

/** What is to be sent together. */
export interface Batch {
  /**
   * Changed names, with the resource as the last wave brought it (undefined: gone). Not as it is by then: what one type says of another,
   * such as which policies hold for a workload, fits only within one wave.
   */
  pending: Map<string, EncodedResource | undefined>
  /** Instead of pending names: a wave of which nothing but the first so many messages has been sent. */
  wave: { readonly push: SharedPush; readonly sent: Record<PushPart, number> } | undefined
}

/** As a batch, what is to be sent once the stream is writable. */
export interface Watch extends Batch {
  readonly type: ServedType
  wildcard: boolean
  /** Names and keys subscribed to; not kept for wildcard watches, whatever their number. */
  names: Set<string>
  /** What came while another batch was going out: its turn is after all types of that one. */
  readonly later: Batch
  alwaysRespond: boolean
  nonceSent: string
  nonceAcked: string
  /** The last one that the client rejected. */
  nonceRejected: string
  lastError: string | undefined
  lastSentAt: Date | undefined
}

export function createWatch(type: ServedType, wildcard: boolean, names: Iterable<string>): Watch {
  return {
    type,
    wildcard,
    names: new Set(wildcard ? [] : names),
    pending: new Map(),
    wave: undefined,
    later: { pending: new Map(), wave: undefined },
    alwaysRespond: false,
    nonceSent: '',
    nonceAcked: '',
    nonceRejected: '',
    lastError: undefined,
    lastSentAt: undefined,
  }
}

const longestError = 1_000

/** The client rejects what it was sent, for this reason. */
export function noteError(watch: Watch, message: string): void {
  watch.lastError = message.length <= longestError ? message : `${message.slice(0, longestError)}…`
}

/** Forgets what was to be sent, since everything is. */
export function clearPending(watch: Watch): void {
  for (const batch of [watch, watch.later]) {
    batch.pending.clear()
    batch.wave = undefined
  }
}

/** Forgets that the name was to be sent. */
export function clearName(watch: Watch, name: string): void {
  watch.pending.delete(name)
  watch.later.pending.delete(name)
}

/** When the batch before is out: the next one's turn. Returns whether there is one. */
export function takeLater(watch: Watch): boolean {
  const { later } = watch
  if (later.wave === undefined && later.pending.size === 0) return false
  watch.pending = later.pending
  watch.wave = later.wave
  later.pending = new Map()
  later.wave = undefined
  return true
}

/**
 * Notes what of the changes is to be sent to this watch. With `mayShare`, a watch of everything that has nothing else to send takes
 * the wave as it is, which is then encoded once for all watches.
 */
export function noteChanges(
  watch: Watch,
  changes: readonly ResourceChange[],
  nodeName: string,
  mayShare = false,
  batch: Batch = watch,
): void {
  if (mayShare && watch.wildcard && batch.wave === undefined && batch.pending.size === 0) {
    const push = sharedPushOf(watch.type.source.typeUrl, changes)
    batch.wave = { push, sent: { all: 0, changes: 0, removals: 0 } }
    return
  }
  if (batch.wave !== undefined) {
    for (const change of batch.wave.push.changes) batch.pending.set(change.name, change.new)
    batch.wave = undefined
  }
  for (const change of changes) if (concerns(watch, change, nodeName)) batch.pending.set(change.name, change.new)
}

function concerns(watch: Watch, change: ResourceChange, nodeName: string): boolean {
  if (watch.wildcard || watch.names.has(change.name)) return true
  if (watch.type.source.lookup === undefined) return false
  const reach = change.reach?.()
  if (reach === undefined) return false
  return reach.keys.some((key) => watch.names.has(key)) || (nodeName !== '' && reach.nodes.includes(nodeName))
}

export function hasPending(watch: Watch, part: PushPart): boolean {
  const { wave } = watch
  if (wave !== undefined) return wave.push.parts(part).length > wave.sent[part]
  if (part === 'all') return watch.pending.size > 0
  return watch.pending.values().some((resource) => (resource === undefined) === (part === 'removals'))
}

/** Takes what is pending of one part, in messages of bounded size; undefined when there is nothing. */
export function takePending(watch: Watch, part: PushPart): Content | undefined {
  if (watch.wave !== undefined) return takeShared(watch, watch.wave, part)
  const resources: EncodedResource[] = []
  const removed: string[] = []
  let bytes = 0
  for (const [name, resource] of watch.pending) {
    if (bytes > pushBytes) break
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

function takeShared(watch: Watch, wave: NonNullable<Watch['wave']>, part: PushPart): Content | undefined {
  const content = wave.push.parts(part)[wave.sent[part]]
  wave.sent[part] += 1
  const isSent = (one: PushPart): boolean => wave.sent[one] >= wave.push.parts(one).length
  if (part === 'all' ? isSent('all') : isSent('changes') && isSent('removals')) watch.wave = undefined
  return content
}
