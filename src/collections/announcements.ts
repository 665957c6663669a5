// What subscribers are to be told at the end of a wave: changed values, and collections that have become synced.
import type { CollectionReport } from './errors.ts'
import type { Store } from './store.ts'

export class Announcements {
  readonly #report: (report: CollectionReport) => void
  readonly #touched = new Set<Store<unknown>>()
  #syncChanged = false

  constructor(report: (report: CollectionReport) => void) {
    this.#report = report
  }

  get pending(): boolean {
    return this.#touched.size > 0 || this.#syncChanged
  }

  get hasChanges(): boolean {
    return this.#touched.size > 0
  }

  /** A value of the collection was written. */
  touched(store: Store<unknown>): void {
    this.#touched.add(store)
  }

  /** A source has been read once, or a collection was added. */
  syncChanged(): void {
    this.#syncChanged = true
  }

  /** Tells all of it. `isRead` says of inputs whether their source has been read once. */
  tell(stores: readonly Store<unknown>[], isRead: (store: Store<unknown>) => boolean | undefined): void {
    this.#tellChanges()
    if (!this.#syncChanged) return
    this.#syncChanged = false
    for (const store of [...stores].sort((a, b) => a.height - b.height)) {
      const ready = isRead(store) ?? store.upstream.values().every((upstream) => upstream.synced)
      if (ready && !store.synced) store.becomeSynced()
    }
  }

  #tellChanges(): void {
    const touched = [...this.#touched]
    this.#touched.clear()
    const calls = touched.flatMap((store) => store.takeNotifications().map((call) => ({ store, call })))
    for (const { store, call } of calls) {
      try {
        call()
      } catch (error) {
        this.#report({ kind: 'listener-failed', collection: store.name, error })
      }
    }
  }
}
