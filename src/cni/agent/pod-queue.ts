// Events of pods on their way to be handled: those under one key one after the other. What waits is bounded: updates of one pod become one.
import type { PodEvent } from './decide.ts'

export interface PodQueue extends AsyncDisposable {
  push(key: string, event: PodEvent): void
  /** Lets the handling begin: until then events only wait. */
  start(): void
  /** Resolves when nothing waits or runs. */
  idle(): Promise<void>
}

/** Handles one event. Must not reject; ends soon after the signal, which says that the pod is gone or the queue is closed. */
export type HandlePodEvent = (key: string, event: PodEvent, isOver: AbortSignal) => Promise<void>

interface Lane {
  readonly waiting: PodEvent[]
  running?: { readonly event: PodEvent; readonly over: AbortController }
}

export function createPodQueue(handle: HandlePodEvent): PodQueue {
  const lanes = new Map<string, Lane>()
  const following = new Set<Promise<void>>()
  const started = Promise.withResolvers<void>()
  let isClosed = false

  const follow = async (key: string, lane: Lane): Promise<void> => {
    await started.promise
    for (let event = lane.waiting.shift(); event !== undefined && !isClosed; event = lane.waiting.shift()) {
      const over = new AbortController()
      lane.running = { event, over }
      await handle(key, event, over.signal)
    }
    lanes.delete(key)
  }

  return {
    push: (key, event) => {
      if (isClosed) return
      const lane = lanes.get(key)
      if (lane === undefined) {
        const fresh: Lane = { waiting: [event] }
        lanes.set(key, fresh)
        const one = follow(key, fresh).finally(() => following.delete(one))
        following.add(one)
        return
      }
      const last = lane.waiting.at(-1)
      const merged = last === undefined ? undefined : merge(last, event)
      if (merged === undefined) lane.waiting.push(event)
      else lane.waiting.splice(-1, 1, merged)
      const { running } = lane
      if (event.kind === 'deleted' && running?.event.kind === 'updated' && isSamePod(running.event, event)) {
        running.over.abort()
      }
    },
    start: started.resolve,
    idle: async () => {
      while (following.size > 0) await Promise.all(following)
    },
    [Symbol.asyncDispose]: async () => {
      isClosed = true
      started.resolve()
      for (const { running } of lanes.values()) running?.over.abort()
      await Promise.all(following)
    },
  }
}

function isSamePod(a: PodEvent, b: PodEvent): boolean {
  return a.pod.metadata?.uid === b.pod.metadata?.uid
}

/** One event for two in a row; undefined where both have to be handled. */
function merge(first: PodEvent, second: PodEvent): PodEvent | undefined {
  if (first.kind !== 'updated' || second.kind !== 'updated' || !isSamePod(first, second)) return undefined
  const old = first.old ?? second.old
  return { kind: 'updated', pod: second.pod, ...(old === undefined ? {} : { old }) }
}
