// The inputs of a graph together: their changes wait here for the next wave, or are undone.
import type { InputStage } from './input.ts'
import type { ShouldPause, Store } from './store.ts'

export class Stages {
  readonly #stages = new Map<Store<unknown>, InputStage>()

  add(store: Store<unknown>, stage: InputStage): void {
    this.#stages.set(store, stage)
  }

  get pending(): boolean {
    return this.#stages.values().some((stage) => stage.pending)
  }

  /** Whether the source of an input has been read once; undefined for collections that are no input. */
  isRead(store: Store<unknown>): boolean | undefined {
    return this.#stages.get(store)?.read
  }

  /** A transaction begins: what it changes can be undone until the next one. */
  mark(): void {
    for (const stage of this.#stages.values()) stage.mark()
  }

  rollback(): void {
    for (const stage of this.#stages.values()) stage.rollback()
  }

  /** Takes what waits into the wave that begins. */
  begin(): void {
    for (const stage of this.#stages.values()) stage.begin()
  }

  /** Puts what was taken in force; false when it stopped before the end. */
  commit(shouldPause: ShouldPause): boolean {
    return this.#stages.values().every((stage) => stage.commit(shouldPause))
  }
}
