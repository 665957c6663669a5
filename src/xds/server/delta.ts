// The incremental protocol: what a DeltaDiscoveryRequest changes in a watch, and what it is answered with.
import type { discovery } from '../../proto/index.ts'
import type { EncodedResource } from '../types.ts'
import { type Content, clearName, clearPending, createWatch, noteError, type ServedType, type Watch } from './watch.ts'

export type Step =
  | { readonly kind: 'silent'; readonly reason: 'nack' | 'stale' | 'ack' | 'unsubscribed' }
  | { readonly kind: 'answer'; readonly watch: Watch; readonly content: () => Content }

type Versions = Readonly<Record<string, string>>

/** `nodeName` is the client's node: an on-demand client gets the workloads of its node without asking. */
export function stepDelta(
  known: Watch | undefined,
  type: ServedType,
  request: discovery.DeltaDiscoveryRequest,
  nodeName: string,
): Step {
  if (request.errorDetail !== undefined) {
    if (known !== undefined) noteError(known, request.errorDetail.message)
    return { kind: 'silent', reason: 'nack' }
  }
  const unsubscribed = new Set(request.resourceNamesUnsubscribe)
  const asked = new Set([...request.resourceNamesSubscribe, ...Object.keys(request.initialResourceVersions)])
  for (const name of [...unsubscribed, '*']) asked.delete(name)
  if (known === undefined) {
    const watch = createWatch(type, asksForAll(request), asked)
    return answer(watch, asked, request.initialResourceVersions, nodeName)
  }
  const nonce = request.responseNonce
  if (nonce !== '' && nonce !== known.nonceSent) return { kind: 'silent', reason: 'stale' }
  const added = difference(asked, known.names)
  const removed = [...unsubscribed].filter((name) => known.wildcard || known.names.has(name))
  if (nonce !== '') {
    known.lastError = undefined
    known.nonceAcked = nonce
  }
  if (!known.wildcard) {
    for (const name of removed) {
      known.names.delete(name)
      clearName(known, name)
    }
    for (const name of added) known.names.add(name)
  }
  const changed = added.size > 0 || removed.length > 0
  if (known.alwaysRespond && !changed) {
    known.alwaysRespond = false
    return answer(known, known.names, {}, nodeName)
  }
  const everyRequest = type.source.lookup !== undefined
  if (!changed && (nonce !== '' || !everyRequest)) return { kind: 'silent', reason: 'ack' }
  if (added.size === 0 && !everyRequest) return { kind: 'silent', reason: 'unsubscribed' }
  known.alwaysRespond = false
  return answer(known, added, request.initialResourceVersions, nodeName)
}

function asksForAll(request: discovery.DeltaDiscoveryRequest): boolean {
  if (request.resourceNamesSubscribe.length === 0) return true
  return request.resourceNamesSubscribe.includes('*') && !request.resourceNamesUnsubscribe.includes('*')
}

function answer(watch: Watch, asked: ReadonlySet<string>, held: Versions, nodeName: string): Step {
  // Content is read when it can be sent, so that what waits for a slow client is the newest.
  const content = watch.wildcard
    ? () => wildcardContent(watch, asked, held)
    : () => namedContent(watch, asked, held, nodeName)
  return { kind: 'answer', watch, content }
}

function wildcardContent(watch: Watch, asked: ReadonlySet<string>, held: Versions): Content {
  const { source } = watch.type
  // Names asked for on a wildcard stream of a type without on-demand mode are answered alone.
  const all = source.lookup !== undefined || watch.nonceSent === ''
  if (!all) return pick(watch, asked, held)
  clearPending(watch)
  const { everything } = watch.type
  if (everything !== undefined && asked.size === 0) return everything()
  const resources: EncodedResource[] = []
  for (const resource of source.list()) if (!holds(held, resource)) resources.push(resource)
  return { resources, removed: [...asked].filter((name) => source.get(name) === undefined).sort() }
}

function namedContent(watch: Watch, asked: ReadonlySet<string>, held: Versions, nodeName: string): Content {
  const { source } = watch.type
  const { lookup } = source
  if (lookup === undefined) return pick(watch, asked, held)
  const ofNode = nodeName === '' ? [] : [...(source.namesOfNode?.(nodeName) ?? [])]
  const keys = new Set([...asked, ...ofNode.filter((name) => !watch.names.has(name))])
  const found = new Map<string, EncodedResource>()
  const missing: string[] = []
  for (const key of keys) {
    const resources = lookup(key)
    if (resources.length === 0) missing.push(key)
    for (const resource of resources) found.set(resource.name, resource)
  }
  for (const name of found.keys()) {
    watch.names.add(name)
    clearName(watch, name)
  }
  return { resources: [...found.values()].filter((resource) => !holds(held, resource)), removed: missing.sort() }
}

function pick(watch: Watch, names: ReadonlySet<string>, held: Versions): Content {
  const resources: EncodedResource[] = []
  const removed: string[] = []
  for (const name of names) {
    const resource = watch.type.source.get(name)
    if (resource === undefined) removed.push(name)
    else if (!holds(held, resource)) resources.push(resource)
    clearName(watch, name)
  }
  return { resources, removed: removed.sort() }
}

function holds(held: Versions, resource: EncodedResource): boolean {
  return Object.hasOwn(held, resource.name) && held[resource.name] === resource.version && resource.version !== ''
}

function difference(names: ReadonlySet<string>, from: ReadonlySet<string>): Set<string> {
  return new Set([...names].filter((name) => !from.has(name)))
}
