// Input collections: changes wait for the end of the transaction they are made in.
import type { GraphEngine } from './engine.ts'
import type { CollectionOptions } from './options.ts'
import { type ShouldPause, Store } from './store.ts'
import type { InputCollection } from './types.ts'

/** The changes of an input that wait for the next wave. */
export interface InputStage {
  readonly pending: boolean
  /** The source has been read once. */
  readonly read: boolean
  /** Takes what waits into the wave that begins. */
  begin(): void
  /** Puts what was taken in force; false when it stopped before the end. */
  commit(shouldPause: ShouldPause): boolean
  /** A transaction begins: what it changes can be undone until the next one. */
  mark(): void
  rollback(): void
}

export function createInput<T>(graph: GraphEngine, name: string, options: CollectionOptions<T>) {
  const store = new Store<T>(graph, name, { kind: 'input', equals: options.equals })
  let staged = new Map<string, T | undefined>()
  let taken = new Map<string, T | undefined>()
  let undo: (() => void)[] = []
  let read = false
  let readTaken = false
  let readStaged = false
  const stageOne = (key: string, value: T | undefined): void => {
    const [wasStaged, before] = [staged.has(key), staged.get(key)]
    undo.push(() => (wasStaged ? staged.set(key, before) : staged.delete(key)))
    staged.set(key, value)
  }
  const keys = (): Set<string> => new Set([...store.latestKeys(), ...taken.keys(), ...staged.keys()])
  const put = (key: string, value: T | undefined): void => graph.transaction(() => stageOne(key, value))

  const stage: InputStage = {
    get pending() {
      return staged.size > 0 || readStaged
    },
    get read() {
      return read
    },
    begin: () => {
      if (taken.size === 0) [taken, staged] = [staged, taken]
      else {
        for (const [key, value] of staged) taken.set(key, value)
        staged.clear()
      }
      readTaken ||= readStaged
      readStaged = false
    },
    commit: (shouldPause) => {
      for (const [key, value] of taken) {
        taken.delete(key)
        store.write(key, value)
        if (taken.size > 0 && shouldPause()) return false
      }
      if (readTaken && !read) {
        read = true
        graph.syncChanged()
      }
      return true
    },
    mark: () => {
      undo = []
    },
    rollback: () => {
      for (const one of undo.reverse()) one()
      undo = []
    },
  }
  const input: InputCollection<T> = Object.assign(store, {
    set: (key: string, value: T) => put(key, value),
    delete: (key: string) => put(key, undefined),
    keys,
    replace: (entries: Iterable<readonly [string, T]>) =>
      graph.transaction(() => {
        for (const key of keys()) stageOne(key, undefined)
        for (const [key, value] of entries) stageOne(key, value)
      }),
    markSynced: () =>
      graph.transaction(() => {
        const before = readStaged
        undo.push(() => {
          readStaged = before
        })
        readStaged = true
      }),
  })
  return { input, stage, store }
}
