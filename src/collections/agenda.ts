// What waits to be computed, and in which order.
import { CollectionCycleError } from './errors.ts'
import { connect, lowest } from './order.ts'
import type { ShouldPause, Store } from './store.ts'

export const never: ShouldPause = () => false

export class Agenda {
  readonly #dirty = new Set<Store<unknown>>()
  #cycle: CollectionCycleError | undefined

  get isEmpty(): boolean {
    return this.#dirty.size === 0
  }

  add(store: Store<unknown>): void {
    this.#dirty.add(store)
  }

  /** Notes that one collection reads another. */
  connect(reader: Store<unknown>, read: Store<unknown>): void {
    try {
      connect(reader, read)
    } catch (error) {
      if (error instanceof CollectionCycleError) this.#cycle = error
      throw error
    }
  }

  /** The circle met since it was asked for last: derivations that throw are reported, a circle is the caller's to know. */
  takeCycle(): CollectionCycleError | undefined {
    const cycle = this.#cycle
    this.#cycle = undefined
    return cycle
  }

  /** Computes one collection and all it reads. */
  makeCurrent(store: Store<unknown>): void {
    for (const upstream of store.upstream) this.makeCurrent(upstream)
    if (this.#dirty.delete(store)) settle(store, never)
  }

  /** Computes everything; false when it stopped before the end. */
  compute(shouldPause: ShouldPause): boolean {
    for (let next = lowest(this.#dirty); next !== undefined; next = lowest(this.#dirty)) {
      this.#dirty.delete(next)
      if (settle(next, shouldPause)) continue
      this.#dirty.add(next)
      return false
    }
    return true
  }
}

function settle(store: Store<unknown>, shouldPause: ShouldPause): boolean {
  const start = performance.now()
  const isDone = store.options.settle?.(shouldPause) ?? true
  store.stats.milliseconds += performance.now() - start
  return isDone
}
