// Changes wait here until nothing new came for a moment, so that a burst becomes one push.
import type { ResourceChange } from '../types.ts'

export interface QuietTimes {
  /** How long nothing new must have come, in milliseconds. 0: changes are pushed at the end of the turn they come in. */
  readonly afterMs: number
  /** The longest a change waits. */
  readonly maxMs: number
}

export type Wave = ReadonlyMap<string, readonly ResourceChange[]>

export interface PushLane {
  add(typeUrl: string, changes: readonly ResourceChange[]): void
  close(): void
}

/** How soon to look again whether the wave before is out. */
const busyMs = 5

/** While `isBusy`, what waits goes on waiting and growing: clients then get fewer and larger pushes, not a queue of them. */
export function createPushLane(
  times: QuietTimes,
  push: (wave: Wave, waitedMs: number) => void,
  isBusy: () => boolean = () => false,
): PushLane {
  let waiting = new Map<string, Map<string, ResourceChange>>()
  let timer: NodeJS.Timeout | undefined
  let isDue = false
  let closed = false
  let firstAt = 0
  let lastAt = 0

  function fire(): void {
    const now = performance.now()
    const dueAt = Math.min(lastAt + times.afterMs, firstAt + times.maxMs)
    if (dueAt - now > 0.5) {
      timer = setTimeout(fire, dueAt - now)
      return
    }
    if (isBusy()) {
      timer = setTimeout(fire, busyMs)
      return
    }
    timer = undefined
    flush()
  }

  function flush(): void {
    isDue = false
    if (closed) return
    const wave = new Map([...waiting].map(([typeUrl, changes]) => [typeUrl, [...changes.values()]]))
    waiting = new Map()
    push(wave, performance.now() - firstAt)
  }

  return {
    add(typeUrl, changes) {
      if (changes.length === 0) return
      const merged = waiting.get(typeUrl) ?? new Map<string, ResourceChange>()
      waiting.set(typeUrl, merged)
      for (const change of changes) merged.set(change.name, mergeChange(merged.get(change.name), change))
      if (times.afterMs === 0) {
        if (isDue) return
        isDue = true
        firstAt = performance.now()
        queueMicrotask(flush)
        return
      }
      lastAt = performance.now()
      if (timer !== undefined) return
      firstAt = lastAt
      timer = setTimeout(fire, times.afterMs)
    },
    close() {
      closed = true
      clearTimeout(timer)
      timer = undefined
      waiting.clear()
    },
  }
}

function reachOfBoth(earlier: ResourceChange['reach'], later: ResourceChange['reach']): Pick<ResourceChange, 'reach'> {
  if (earlier === undefined && later === undefined) return {}
  return {
    reach() {
      const [before, after] = [earlier?.(), later?.()]
      return {
        keys: [...new Set([...(before?.keys ?? []), ...(after?.keys ?? [])])],
        nodes: [...new Set([...(before?.nodes ?? []), ...(after?.nodes ?? [])])],
      }
    },
  }
}

function mergeChange(earlier: ResourceChange | undefined, later: ResourceChange): ResourceChange {
  if (earlier === undefined) return later
  return {
    name: later.name,
    ...(earlier.old === undefined ? {} : { old: earlier.old }),
    ...(later.new === undefined ? {} : { new: later.new }),
    ...reachOfBoth(earlier.reach, later.reach),
  }
}
