// Contents that many clients of the incremental protocol get alike: put together and encoded once for all of them.
import type { EncodedResource, ResourceChange, ResourceSource } from '../types.ts'
import { deltaContent } from './wire-content.ts'

/** What is sent: resources, and the names of those that are gone. */
export interface Content {
  readonly resources: readonly EncodedResource[]
  readonly removed: readonly string[]
  /** The entries as every wildcard client of the incremental protocol gets them. */
  readonly encoded?: () => Uint8Array
}

/** A push is split when it grows beyond this. */
export const pushBytes = 4 * 1024 * 1024

function sharedContent(typeUrl: string, resources: readonly EncodedResource[], removed: readonly string[]): Content {
  let bytes: Uint8Array | undefined
  return {
    resources,
    removed,
    encoded() {
      bytes ??= deltaContent(typeUrl, resources, removed)
      return bytes
    },
  }
}

export type PushPart = 'all' | 'changes' | 'removals'

/** The changes of one type in one wave, in messages of bounded size. */
export interface SharedPush {
  readonly changes: readonly ResourceChange[]
  parts(part: PushPart): readonly Content[]
}

const pushes = new WeakMap<readonly ResourceChange[], SharedPush>()

/** The same for everyone who asks with the same changes. */
export function sharedPushOf(typeUrl: string, changes: readonly ResourceChange[]): SharedPush {
  const known = pushes.get(changes)
  if (known !== undefined) return known
  const removed = changes.flatMap((change) => (change.new === undefined ? [change.name] : [])).sort()
  const resources = changes.flatMap((change) => change.new ?? [])
  const made = new Map<PushPart, readonly Content[]>()
  const push: SharedPush = {
    changes,
    parts(part) {
      const known = made.get(part)
      if (known !== undefined) return known
      const contents = split(typeUrl, part === 'removals' ? [] : resources, part === 'changes' ? [] : removed)
      made.set(part, contents)
      return contents
    },
  }
  pushes.set(changes, push)
  return push
}

function split(typeUrl: string, resources: readonly EncodedResource[], removed: readonly string[]): Content[] {
  const contents: Content[] = []
  let from = 0
  let bytes = 0
  for (const [at, { body }] of resources.entries()) {
    bytes += body.byteLength
    if (bytes <= pushBytes) continue
    contents.push(sharedContent(typeUrl, resources.slice(from, at + 1), []))
    from = at + 1
    bytes = 0
  }
  const rest = resources.slice(from)
  if (rest.length + removed.length > 0) contents.push(sharedContent(typeUrl, rest, removed))
  return contents
}

/** All resources of a type. */
export interface SharedList {
  get(): Content
  /** The source has changed. */
  forget(): void
}

/** For so long after it was last asked for the list is held: clients tend to come together, and of a large mesh one after another. */
const heldMs = 5_000

export function sharedListOf(source: ResourceSource): SharedList {
  let content: Content | undefined
  let timer: NodeJS.Timeout | undefined
  const forget = (): void => {
    clearTimeout(timer)
    content = undefined
  }
  return {
    get() {
      content ??= sharedContent(source.typeUrl, [...source.list()], [])
      clearTimeout(timer)
      timer = setTimeout(forget, heldMs)
      timer.unref()
      return content
    },
    forget,
  }
}
