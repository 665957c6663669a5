// The mesh as the node proxy knows it: applies pushes as a whole, in memory that all its threads read, and tells what changed.
import { totalmem } from 'node:os'
import {
  createSharedTables,
  type MemoryUsage,
  type SharedMemoryHandle,
  type Standpoint,
  type Transaction,
} from '../../shared-memory/index.ts'
import type { Policy, Service, Workload } from '../model.ts'
import type { DecodedAddress } from './decode-address.ts'
import type { MeshFollower, MeshPublication } from './follower.ts'
import { createFollowing } from './following.ts'
import { createMeshView } from './mesh-view.ts'
import { tableCount, tables } from './tables.ts'
import { failLater, type ListenerFailure, tell } from './tell.ts'
import { policyKey, serviceKey } from './view.ts'
import { createMeshWriter, createNotes, type Replaced } from './write-mesh.ts'

/** One push: everything in it becomes visible at once. Removals come after the rest. */
export interface MeshUpdate {
  readonly workloads?: Iterable<Workload>
  readonly services?: Iterable<Service>
  /** Workloads and services as they come, after those above. */
  readonly addresses?: Iterable<DecodedAddress>
  readonly policies?: Iterable<Policy>
  /** Workload uids or `<namespace>/<hostname>` of services; unknown names are ignored. */
  readonly removedAddresses?: readonly string[]
  readonly removedPolicies?: readonly string[]
}

/** What one push changed. */
export interface MeshChange {
  readonly workloads: readonly Replaced<Workload>[]
  readonly services: readonly Replaced<Service>[]
  readonly policies: readonly Replaced<Policy>[]
}

/** The mesh for threads that only read it. It can be posted. */
export type MeshMemory = SharedMemoryHandle

export interface MeshStateOptions {
  /** The node whose workloads are local; without it all are. */
  readonly node?: string
  /** How many threads besides this one read the mesh; 0. */
  readonly readers?: number
  /** The most memory that the mesh may take; by default half of what there is, at most 4 GiB. */
  readonly limitBytes?: number
  /** What becomes of what a listener throws: the push is in force and the other listeners are told; by default the process then ends. */
  readonly onListenerFailure?: ListenerFailure
}

export interface MeshState extends MeshFollower {
  /** Throws a SharedMemoryError `OUT_OF_MEMORY` when there is no room; what was before then stays. */
  apply(update: MeshUpdate): void
  /** Makes the content exactly this. Throws as `apply` does. */
  replace(content: MeshUpdate): void
  /**
   * Calls the listener after each push, when the new state is in place. Returns the function that ends it. Only while there are such
   * listeners are the values before and after gathered.
   */
  subscribe(listener: (change: MeshChange) => void): () => void
  /** The same of workloads of this node only. */
  subscribeLocal(listener: (changes: readonly Replaced<Workload>[]) => void): () => void
  /** For `openMeshReader`. */
  readonly memory: MeshMemory
  /** Calls the listener after each push with what the readers are to be told. Returns the function that ends it. */
  onPublish(listener: (publication: MeshPublication) => void): () => void
  usage(): MemoryUsage
}

export function createMeshState(options: MeshStateOptions = {}): MeshState {
  const shared = createSharedTables({
    tables: tableCount,
    readers: options.readers ?? 0,
    limitBytes: options.limitBytes ?? usualLimit(),
  })
  const view = createMeshView(shared.view)
  const { node = '', onListenerFailure = failLater } = options
  const following = createFollowing(view, onListenerFailure)
  const listeners = new Set<(change: MeshChange) => void>()
  const localListeners = new Set<(changes: readonly Replaced<Workload>[]) => void>()
  const publishing = new Set<(publication: MeshPublication) => void>()
  const isLocal = (workload: Workload): boolean => node === '' || workload.node === node
  const writer = createMeshWriter(isLocal)

  function commit(change: (transaction: Transaction) => void, removesOnly: boolean): Standpoint {
    try {
      const standpoint = shared.commit(change, { removesOnly })
      writer.commit()
      return standpoint
    } catch (error) {
      writer.abort()
      throw error
    }
  }

  function apply(update: MeshUpdate): void {
    const changed = createNotes()
    const wanted = {
      all: listeners.size > 0,
      local: (workload: Workload) => localListeners.size > 0 && isLocal(workload),
    }
    const { workloads, services, addresses, policies } = update
    const removesOnly = [workloads, services, addresses, policies].every(isEmpty)
    const standpoint = commit(
      (transaction) =>
        writer.write(transaction, changed, wanted, (push) => {
          for (const one of update.services ?? []) push.putService(one)
          for (const one of update.workloads ?? []) push.putWorkload(one)
          for (const one of update.addresses ?? []) {
            if (one.kind === 'workload') push.putWorkload(one.workload)
            else push.putService(one.service)
          }
          for (const one of update.policies ?? []) push.putPolicy(one)
          for (const key of update.removedAddresses ?? []) push.removeAddress(key)
          for (const key of update.removedPolicies ?? []) push.removePolicy(key)
        }),
      removesOnly,
    )
    const { signal } = changed
    tell(publishing, { ...standpoint, signal }, onListenerFailure)
    following.signal(signal)
    const all: MeshChange = {
      workloads: [...changed.workloads.values()],
      services: [...changed.services.values()],
      policies: [...changed.policies.values()],
    }
    tell(listeners, all, onListenerFailure)
    const local = all.workloads.filter((one) => [one.old, one.new].some((two) => two !== undefined && isLocal(two)))
    tell(localListeners, local, onListenerFailure)
  }

  const ending = <T>(set: Set<T>, listener: T): (() => void) => {
    set.add(listener)
    return () => void set.delete(listener)
  }

  return {
    ...view,
    onChange: following.onChange,
    waitForLocalWorkload: following.waitForLocalWorkload,
    apply,
    replace(content) {
      const workloads = [...(content.workloads ?? [])]
      const services = [...(content.services ?? [])]
      const policies = [...(content.policies ?? [])]
      const keep = new Set([...workloads.map((one) => one.uid), ...services.map(serviceKey)])
      const keepPolicies = new Set(policies.map(policyKey))
      const keysOf = (table: number) => shared.view.leaves(table).map((leaf) => shared.view.keyOf(leaf))
      apply({
        workloads,
        services,
        policies,
        removedAddresses: [...keysOf(tables.workloads), ...keysOf(tables.services)].filter((key) => !keep.has(key)),
        removedPolicies: keysOf(tables.policies).filter((key) => !keepPolicies.has(key)),
      })
    },
    subscribe: (listener) => ending(listeners, listener),
    subscribeLocal: (listener) => ending(localListeners, listener),
    memory: shared.handle,
    onPublish: (listener) => ending(publishing, listener),
    usage: () => shared.usage(),
  }
}

const isEmpty = (list: Iterable<unknown> | undefined): boolean =>
  list === undefined || (Array.isArray(list) && list.length === 0)

const gibibyte = 2 ** 30

function usualLimit(): number {
  const constrained = process.constrainedMemory()
  const there = constrained > 0 && constrained < totalmem() ? constrained : totalmem()
  return Math.min(4 * gibibyte, Math.floor(there / 2))
}
