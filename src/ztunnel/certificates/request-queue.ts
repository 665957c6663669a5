// Requests waiting for a free place, by priority, first come first served within one.

/** RealTime: a connection waits. Warmup: fetched ahead. Background: a renewal. */
export type Priority = 'RealTime' | 'Warmup' | 'Background'

const order: readonly Priority[] = ['RealTime', 'Warmup', 'Background']

export interface RequestQueue<T> {
  /** Adds an item, or moves one that waits with a lower priority up. */
  add(item: T, priority: Priority): void
  remove(item: T): void
  /** Takes the next item out. */
  take(): T | undefined
}

export function createRequestQueue<T>(): RequestQueue<T> {
  const lanes = order.map(() => new Set<T>())
  return {
    add(item, priority) {
      const wanted = order.indexOf(priority)
      const present = lanes.findIndex((lane) => lane.has(item))
      if (present >= 0 && present <= wanted) return
      lanes[present]?.delete(item)
      lanes[wanted]?.add(item)
    },
    remove(item) {
      for (const lane of lanes) lane.delete(item)
    },
    take() {
      for (const lane of lanes) {
        for (const item of lane) {
          lane.delete(item)
          return item
        }
      }
      return undefined
    },
  }
}
