// The decoded things a thread has used lately: equal state is the same object while it is kept.
import type { TableView } from '../../shared-memory/index.ts'
import { createRecent } from './recent.ts'

export interface Loaded<T> {
  /** Of a leaf; undefined for 0. */
  get(leaf: number): T | undefined
  /** The same for many at once, which do not push out what is kept. */
  peek(leaf: number): T
}

export function createLoaded<T>(
  view: TableView,
  mostKept: number,
  load: (view: TableView, leaf: number) => T,
): Loaded<T> {
  const kept = createRecent<number, { readonly generation: number; readonly value: T }>(mostKept)
  /** A place that is used again has another generation. */
  function known(leaf: number, generation: number): T | undefined {
    const one = kept.get(leaf)
    return one?.generation === generation ? one.value : undefined
  }
  return {
    get(leaf) {
      if (leaf === 0) return undefined
      const generation = view.generationOf(leaf)
      const found = known(leaf, generation)
      if (found !== undefined) return found
      const value = load(view, leaf)
      kept.set(leaf, { generation, value })
      return value
    },
    peek: (leaf) => known(leaf, view.generationOf(leaf)) ?? load(view, leaf),
  }
}
