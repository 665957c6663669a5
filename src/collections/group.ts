// Groups: an index as a collection, one value an index key.
import type { GraphEngine } from './engine.ts'
import { erased, Store } from './store.ts'

export function createGroup<T>(
  graph: GraphEngine,
  name: string,
  source: Store<T>,
  keysOf: (value: T, key: string) => Iterable<string>,
): Store<readonly T[]> {
  const members = new Map<string, Set<string>>()
  const groupsOf = new Map<string, readonly string[]>()
  const dirty = new Set<string>(source.latestKeys())
  const changed = new Set<string>()
  const store: Store<readonly T[]> = new Store<readonly T[]>(graph, name, {
    kind: 'group',
    equals: sameElements,
    settle: (shouldPause) => {
      for (const key of dirty) {
        dirty.delete(key)
        move(key)
        if (shouldPause()) return false
      }
      for (const group of changed) {
        changed.delete(group)
        store.stats.recomputations += 1
        const values = [...(members.get(group) ?? [])].sort().map((key) => source.latest(key))
        const present = values.filter((value) => value !== undefined)
        store.write(group, present.length === 0 ? undefined : present)
        if (changed.size > 0 && shouldPause()) return false
      }
      return true
    },
  })
  const groupsFor = (value: T, key: string): readonly string[] => {
    try {
      return [...new Set(keysOf(value, key))]
    } catch (error) {
      graph.report({ kind: 'index-failed', collection: source.name, index: name, key, error })
      return []
    }
  }
  const move = (key: string): void => {
    const value = source.latest(key)
    const before = groupsOf.get(key) ?? []
    const after = value === undefined ? [] : groupsFor(value, key)
    for (const group of before) {
      changed.add(group)
      const keys = members.get(group)
      keys?.delete(key)
      if (keys?.size === 0) members.delete(group)
    }
    for (const group of after) {
      changed.add(group)
      members.set(group, (members.get(group) ?? new Set()).add(key))
    }
    if (after.length === 0) groupsOf.delete(key)
    else groupsOf.set(key, after)
  }
  source.dependents.push((key) => {
    dirty.add(key)
    graph.markDirty(erased(store))
  })
  return store
}

function sameElements<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((value, at) => Object.is(value, b[at]))
}
