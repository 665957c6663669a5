// The types of one stream that are asked and answered without a watch; what is told of the clients is told again when they come and go.
import type { EncodedResource, OneShotType, ResourceSource, XdsClient } from '../types.ts'
import type { Request } from './request.ts'
import { type Content, createWatch, type Watch } from './watch.ts'

export interface Answer {
  readonly watch: Watch
  readonly content: () => Content
}

export interface OneShots {
  /** Undefined: the request asks for nothing. Throws a StreamError to end the stream. */
  answer(type: OneShotType, request: Request): Answer | undefined
  /** Clients have come or gone. Returns whether that is to be told. */
  recall(): boolean
  /** What is to be told again, one type at a time; undefined when all is told. */
  next(): Answer | undefined
}

export function createOneShots(client: XdsClient): OneShots {
  /** The types that are told again, with the names that the client holds of them. */
  const standing = new Map<OneShotType, Set<string>>()
  const due = new Set<OneShotType>()

  /** Whole, with the names of what is gone. */
  function tell(type: OneShotType, resources: readonly EncodedResource[]): Content {
    due.delete(type)
    const held = standing.get(type) ?? new Set()
    const now = new Set(resources.map(({ name }) => name))
    standing.set(type, now)
    return { resources, removed: [...held.difference(now)].sort() }
  }

  return {
    answer(type, { kind, message }) {
      // An acknowledgement asks for nothing.
      if (message.responseNonce !== '') return undefined
      if (type.isOfClients === true && kind === 'delta' && message.resourceNamesUnsubscribe.includes('*')) {
        standing.delete(type)
        due.delete(type)
        return undefined
      }
      const resources = type.answer(client, kind === 'delta' ? message.resourceNamesSubscribe : message.resourceNames)
      const content = type.isOfClients === true ? tell(type, resources) : { resources, removed: [] }
      return { watch: watchOf(type), content: () => content }
    },
    recall() {
      for (const type of standing.keys()) due.add(type)
      return due.size > 0
    },
    next() {
      const [type] = due
      return type && { watch: watchOf(type), content: () => tell(type, type.answer(client, [])) }
    },
  }
}

function watchOf({ typeUrl }: OneShotType): Watch {
  const source: ResourceSource = {
    typeUrl,
    synced: true,
    list: () => [],
    get: () => undefined,
    subscribe: () => () => {},
  }
  return createWatch({ source, isWildcard: true }, true, [])
}
