// For tests: a source of resources held in memory.
import type { EncodedResource, ResourceChange, ResourceSource } from './types.ts'

export interface MemorySource extends ResourceSource {
  synced: boolean
  readonly listeners: number
  /** Puts and removes resources in one wave. */
  change(wave: { readonly set?: readonly MemoryResource[]; readonly remove?: readonly string[] }): void
}

export interface MemoryResource {
  readonly name: string
  readonly text: string
  readonly aliases?: readonly string[]
  readonly services?: readonly string[]
  readonly node?: string
}

/** With `onDemand`, resources are found by alias, service key and node as well. */
export function createMemorySource(typeUrl: string, options: { readonly onDemand?: boolean } = {}): MemorySource {
  const resources = new Map<string, { resource: EncodedResource; of: MemoryResource }>()
  const listeners = new Set<(changes: readonly ResourceChange[]) => void>()
  const keysOf = (of: MemoryResource | undefined) =>
    of === undefined ? [] : [of.name, ...(of.aliases ?? []), ...(of.services ?? [])]

  const source: MemorySource = {
    typeUrl,
    synced: true,
    get listeners() {
      return listeners.size
    },
    list: () => [...resources.values()].map(({ resource }) => resource),
    get: (name) => resources.get(name)?.resource,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    change({ set = [], remove = [] }) {
      const changes: ResourceChange[] = []
      const note = (name: string, next: MemoryResource | undefined): void => {
        const before = resources.get(name)
        if (next === undefined) resources.delete(name)
        else resources.set(name, { of: next, resource: encode(next) })
        const after = resources.get(name)
        changes.push({
          name,
          ...(before === undefined ? {} : { old: before.resource }),
          ...(after === undefined ? {} : { new: after.resource }),
          reach: () => ({
            keys: [...keysOf(before?.of), ...keysOf(next)],
            nodes: [before?.of.node, next?.node].filter((node) => node !== undefined),
          }),
        })
      }
      for (const resource of set) note(resource.name, resource)
      for (const name of remove) note(name, undefined)
      for (const listener of [...listeners]) listener(changes)
    },
  }
  if (options.onDemand !== true) return source
  return Object.assign(source, {
    lookup: (key: string) =>
      [...resources.values()].filter(({ of }) => keysOf(of).includes(key)).map(({ resource }) => resource),
    namesOfNode: (node: string) =>
      [...resources.values()].filter(({ of }) => of.node === node).map(({ of }) => of.name),
  })
}

function encode({ name, text, aliases = [] }: MemoryResource): EncodedResource {
  const body = new TextEncoder().encode(text)
  return { name, aliases, version: `v-${text.length}-${text.slice(0, 40)}`, body }
}
