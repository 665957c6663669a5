// The state-of-the-world protocol: what a DiscoveryRequest changes in a watch, and what it is answered with.
import type { discovery } from '../../proto/index.ts'
import type { EncodedResource } from '../types.ts'
import type { Step } from './delta.ts'
import { type Content, clearName, clearPending, createWatch, noteError, type ServedType, type Watch } from './watch.ts'

export type SotwStep = Step | { readonly kind: 'forget' }

export function stepSotw(known: Watch | undefined, type: ServedType, request: discovery.DiscoveryRequest): SotwStep {
  if (request.errorDetail !== undefined) {
    if (known !== undefined) noteError(known, request.errorDetail.message)
    return { kind: 'silent', reason: 'nack' }
  }
  const names = new Set(request.resourceNames.filter((name) => name !== '*'))
  const all = type.isWildcard && names.size === 0
  if (names.size === 0 && !type.isWildcard) return { kind: 'forget' }
  if (known === undefined || request.responseNonce === '') {
    const watch = createWatch(type, all, names)
    watch.nonceSent = known?.nonceSent ?? ''
    watch.nonceAcked = known?.nonceAcked ?? ''
    return { kind: 'answer', watch, content: () => sotwContent(watch, watch.names) }
  }
  if (request.responseNonce !== known.nonceSent) return { kind: 'silent', reason: 'stale' }
  known.lastError = undefined
  known.nonceAcked = request.responseNonce
  const added = new Set([...names].filter((name) => !known.names.has(name)))
  const widened = all && !known.wildcard
  known.wildcard = all
  known.names = names
  if (known.alwaysRespond) {
    known.alwaysRespond = false
    return { kind: 'answer', watch: known, content: () => sotwContent(known, known.names) }
  }
  if (widened) return { kind: 'answer', watch: known, content: () => sotwContent(known, known.names) }
  if (added.size === 0) return { kind: 'silent', reason: 'ack' }
  return { kind: 'answer', watch: known, content: () => sotwContent(known, added) }
}

/** Everything for a wildcard watch, else what there is of the names. */
export function sotwContent(watch: Watch, names: ReadonlySet<string>): Content {
  const { source } = watch.type
  if (watch.wildcard) {
    clearPending(watch)
    return { resources: [...source.list()], removed: [] }
  }
  const resources: EncodedResource[] = []
  for (const name of names) {
    clearName(watch, name)
    const resource = source.get(name)
    if (resource !== undefined) resources.push(resource)
  }
  return { resources, removed: [] }
}

/** The push of a state-of-the-world watch: undefined when nothing it watches changed. */
export function sotwPush(watch: Watch): Content | undefined {
  if (watch.pending.size === 0) return undefined
  const changed = new Set(watch.pending.keys())
  watch.pending.clear()
  const content = sotwContent(watch, changed)
  // A name that vanished has no place in this protocol but in a full set.
  return watch.wildcard || content.resources.length > 0 ? content : undefined
}
