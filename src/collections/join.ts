// Joins: several collections as one.
import type { GraphEngine } from './engine.ts'
import type { CollectionOptions } from './options.ts'
import { erased, Store } from './store.ts'

export function createJoin<T, O>(
  graph: GraphEngine,
  name: string,
  sources: readonly Store<T>[],
  merge: (values: readonly T[], key: string) => O | undefined,
  options: CollectionOptions<O>,
): Store<O> {
  const dirty = new Set<string>(sources.flatMap((source) => [...source.latestKeys()]))
  const store: Store<O> = new Store<O>(graph, name, {
    kind: 'join',
    equals: options.equals,
    settle: (shouldPause) => {
      for (const key of dirty) {
        dirty.delete(key)
        const values = sources.map((source) => source.latest(key)).filter((value) => value !== undefined)
        store.stats.recomputations += 1
        try {
          store.write(key, values.length === 0 ? undefined : merge(values, key))
        } catch (error) {
          store.stats.failures += 1
          graph.report({ kind: 'derivation-failed', collection: name, key, error })
        }
        if (dirty.size > 0 && shouldPause()) return false
      }
      return true
    },
  })
  for (const source of sources) {
    source.dependents.push((key) => {
      dirty.add(key)
      graph.markDirty(erased(store))
    })
  }
  return store
}
