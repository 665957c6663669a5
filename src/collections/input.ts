// Input collections: changes wait for the end of the transaction they are made in.
import type { CollectionOptions, GraphEngine } from './graph.ts'
import { Store } from './store.ts'
import type { InputCollection } from './types.ts'

/** The changes of an input that wait for the next wave. */
export interface InputStage {
  readonly pending: boolean
  /** The source has been read once. */
  readonly read: boolean
  commit(): void
  /** Remembers what waits now; the function returned makes it wait again, and nothing else. */
  checkpoint(): () => void
}

export function createInput<T>(graph: GraphEngine, name: string, options: CollectionOptions<T>) {
  const store = new Store<T>(graph, name, { kind: 'input', equals: options.equals })
  const staged = new Map<string, T | undefined>()
  let read = false
  let readStaged = false
  const put = (key: string, value: T | undefined): void => graph.transaction(() => void staged.set(key, value))

  const stage: InputStage = {
    get pending() {
      return staged.size > 0 || readStaged
    },
    get read() {
      return read
    },
    commit: () => {
      for (const [key, value] of staged) store.write(key, value)
      staged.clear()
      if (readStaged && !read) graph.syncChanged()
      read ||= readStaged
      readStaged = false
    },
    checkpoint: () => {
      const before = staged.size === 0 ? [] : [...staged]
      const readBefore = readStaged
      return () => {
        staged.clear()
        for (const [key, value] of before) staged.set(key, value)
        readStaged = readBefore
      }
    },
  }
  const input: InputCollection<T> = Object.assign(store, {
    set: (key: string, value: T) => put(key, value),
    delete: (key: string) => put(key, undefined),
    replace: (entries: Iterable<readonly [string, T]>) =>
      graph.transaction(() => {
        staged.clear()
        for (const key of store.keys()) staged.set(key, undefined)
        for (const [key, value] of entries) staged.set(key, value)
      }),
    markSynced: () =>
      graph.transaction(() => {
        readStaged = true
      }),
  })
  return { input, stage, store }
}
