// Keeps the automatic addresses of all ServiceEntries written, as long as it runs.
import type { ServiceEntry } from '../../../api/index.ts'
import type { Collection } from '../../../collections/index.ts'
import type { InCluster } from '../inputs.ts'
import { AddressAllocator, type AllocationWrite, type AllocatorOptions } from './allocator.ts'

export interface AllocationOptions extends AllocatorOptions {
  readonly entries: Collection<InCluster<ServiceEntry>>
  /** Applies a JSON patch to the status of an entry. Rejects when the entry changed meanwhile. */
  readonly patchStatus: (entry: ServiceEntry, patch: readonly unknown[]) => Promise<void>
  /** Told when a status could not be written at last. */
  readonly failed: (entry: ServiceEntry, error: unknown) => void
  /** Waits before the next try; rejects when the allocation ends meanwhile. */
  readonly delay: (milliseconds: number) => Promise<void>
}

const maxTries = 5

/** Starts with what is in the collection (it must be synced). One writer in the mesh: the caller holds the lease. */
export function runAddressAllocation(options: AllocationOptions): { close(): Promise<void> } {
  const allocator = new AddressAllocator(options)
  const waiting = new Map<string, AllocationWrite>()
  let closed = false
  let working: Promise<void> = Promise.resolve()

  const keyOf = (entry: ServiceEntry): string => `${entry.metadata.namespace ?? ''}/${entry.metadata.name}`
  const writeAll = async (): Promise<void> => {
    while (!closed) {
      const [first] = waiting
      if (first === undefined) return
      const [key, write] = first
      waiting.delete(key)
      await writeOne(key, write)
    }
  }
  const writeOne = async (key: string, write: AllocationWrite): Promise<void> => {
    for (let attempt = 1; !closed && !waiting.has(key); attempt += 1) {
      try {
        await options.patchStatus(write.entry, allocationPatch(write))
        return
      } catch (error) {
        if (attempt === maxTries) {
          options.failed(write.entry, error)
          return
        }
        if (!(await waited(options.delay(50 * 2 ** attempt)))) return
      }
    }
  }
  const stop = options.entries.subscribe((changes) => {
    const present = changes.map(
      (change) => [change.key, change.kind === 'removed' ? undefined : change.new.object] as const,
    )
    for (const change of changes) if (change.kind !== 'added') waiting.delete(keyOf(change.old.object))
    for (const write of allocator.update(present)) waiting.set(keyOf(write.entry), write)
    working = working.then(writeAll)
  })
  return {
    close: async () => {
      closed = true
      stop()
      await working
    },
  }
}

/** False where the wait was broken off, because the allocation ends. */
async function waited(delay: Promise<void>): Promise<boolean> {
  try {
    await delay
    return true
  } catch {
    return false
  }
}

/** Sets the addresses and nothing else, and only on the state of the entry that was decided on. */
export function allocationPatch({ entry, addresses }: AllocationWrite): unknown[] {
  const { resourceVersion } = entry.metadata
  const test =
    resourceVersion === undefined ? [] : [{ op: 'test', path: '/metadata/resourceVersion', value: resourceVersion }]
  return entry.status === undefined
    ? [...test, { op: 'add', path: '/status', value: { addresses } }]
    : [...test, { op: 'add', path: '/status/addresses', value: addresses }]
}
