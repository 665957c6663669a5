// The kinds that are served, found by path or by apiVersion and kind.
import { apiVersionOf, type KindDefinition } from '../../api/index.ts'
import type { KindRegistry } from './types.ts'

/** Where a kind's objects are stored: the same for all versions of it. */
export function storageOf(kind: KindDefinition): string {
  return `${kind.storage?.group ?? kind.group}/${kind.plural}`
}

/** The `apiVersion` of stored objects of the kind. */
export function storedApiVersion(kind: KindDefinition): string {
  const { group, version } = kind.storage ?? kind
  return group === '' ? version : `${group}/${version}`
}

export function isStored(kind: KindDefinition): boolean {
  return kind.verbs === undefined || kind.verbs.includes('get')
}

export function hasGeneration(kind: KindDefinition): boolean {
  return kind.hasGeneration ?? (kind.custom === true || kind.subresources.status === true)
}

export function createKindRegistry(): KindRegistry {
  const owners = new Map<string, readonly KindDefinition[]>()
  let byPath = new Map<string, KindDefinition>()
  let byKind = new Map<string, KindDefinition>()
  let generation = 0

  function rebuild(): void {
    byPath = new Map()
    byKind = new Map()
    for (const kind of [...owners.values()].flat()) {
      const path = `${kind.group}/${kind.version}/${kind.plural}`
      if (byPath.has(path)) continue
      byPath.set(path, kind)
      if (!byKind.has(`${apiVersionOf(kind)}/${kind.kind}`)) byKind.set(`${apiVersionOf(kind)}/${kind.kind}`, kind)
    }
    generation += 1
  }

  return {
    list: () => [...byPath.values()],
    find: (group, version, plural) => byPath.get(`${group}/${version}/${plural}`),
    byKind: (apiVersion, kind) => byKind.get(`${apiVersion}/${kind}`),
    register(owner, definitions) {
      if (definitions.length === 0) owners.delete(owner)
      else owners.set(owner, definitions)
      rebuild()
    },
    get generation() {
      return generation
    },
  }
}
