// The mesh as the node proxy knows it: applies pushes as a whole, keeps the indices, tells what changed.
import type { Endpoint, PodInfo, Policy, Service, Workload } from '../model.ts'
import { StateError } from './errors.ts'
import type { MeshFollower } from './follower.ts'
import { createPolicyIndex } from './policy-index.ts'
import { createServiceIndex, preferredService } from './service-index.ts'
import { policyKey, serviceKey } from './view.ts'
import { createWorkloadIndex } from './workload-index.ts'

/** One push: everything in it becomes visible at once. Removals come after the rest. */
export interface MeshUpdate {
  readonly workloads?: readonly Workload[]
  readonly services?: readonly Service[]
  readonly policies?: readonly Policy[]
  /** Workload uids or `<namespace>/<hostname>` of services; unknown names are ignored. */
  readonly removedAddresses?: readonly string[]
  readonly removedPolicies?: readonly string[]
}

export interface Replaced<T> {
  readonly key: string
  readonly old?: T
  readonly new?: T
}

/** What one push changed. */
export interface MeshChange {
  readonly workloads: readonly Replaced<Workload>[]
  readonly services: readonly Replaced<Service>[]
  readonly policies: readonly Replaced<Policy>[]
}

export interface MeshStateOptions {
  /** The node whose workloads are local; without it all are. */
  readonly node?: string
}

export interface MeshState extends MeshFollower {
  apply(update: MeshUpdate): void
  /** Makes the content exactly this. */
  replace(content: MeshUpdate): void
  /** Calls the listener after each push, when the new state is in place. Returns the function that ends it. */
  subscribe(listener: (change: MeshChange) => void): () => void
  /** Whether a workload of this node still has the identity. */
  hasLocalIdentity(identity: Pick<Workload, 'trustDomain' | 'namespace' | 'serviceAccount'>): boolean
}

export function createMeshState(options: MeshStateOptions = {}): MeshState {
  const workloads = createWorkloadIndex(options.node)
  const services = createServiceIndex()
  const policies = createPolicyIndex()
  const listeners = new Set<(change: MeshChange) => void>()

  function apply(update: MeshUpdate): void {
    const changed = {
      workloads: new Map<string, Replaced<Workload>>(),
      services: new Map<string, Replaced<Service>>(),
      policies: new Map<string, Replaced<Policy>>(),
    }
    for (const one of update.services ?? []) note(changed.services, serviceKey(one), services.put(one), one)
    for (const one of update.workloads ?? []) note(changed.workloads, one.uid, workloads.put(one), one)
    for (const one of update.policies ?? []) note(changed.policies, policyKey(one), policies.put(one), one)
    for (const key of update.removedAddresses ?? []) {
      const workload = workloads.remove(key)
      if (workload !== undefined) {
        note(changed.workloads, key, workload, undefined)
        continue
      }
      const service = services.remove(key)
      if (service !== undefined) note(changed.services, key, service, undefined)
    }
    for (const key of update.removedPolicies ?? []) {
      const policy = policies.remove(key)
      if (policy !== undefined) note(changed.policies, key, policy, undefined)
    }
    const change: MeshChange = {
      workloads: [...changed.workloads.values()],
      services: [...changed.services.values()],
      policies: [...changed.policies.values()],
    }
    for (const listener of [...listeners]) listener(change)
  }

  function endpoint(service: Service, uid: string): Endpoint | undefined {
    const workload = workloads.get(uid)
    if (workload === undefined) return undefined
    const fixed = service.fixedEndpoints?.get(uid)
    if (fixed !== undefined) return { workload, ports: fixed.ports, status: fixed.status }
    const ports = workload.services.get(serviceKey(service))
    return ports === undefined ? undefined : { workload, ports, status: workload.status }
  }

  const state: MeshState = {
    workload: (uid) => workloads.get(uid),
    workloadByAddress: (network, ip) => workloads.byAddress(network, ip),
    workloadByHostname: (namespace, hostname) => workloads.byHostname(namespace, hostname),
    localWorkload: (pod) => workloads.local(pod),
    hasLocalIdentity: (identity) => workloads.hasLocalIdentity(identity),
    service: (key) => services.get(key),
    serviceByVip: (network, ip, clientNamespace) => services.byVip(network, ip, clientNamespace),
    serviceByHostname: (hostname, clientNamespace) => preferredService(services.byHostname(hostname), clientNamespace),
    servicesByHostname: (hostname) => services.byHostname(hostname),
    *endpoints(service) {
      const key = serviceKey(service)
      const fixed = service.fixedEndpoints
      for (const workload of workloads.ofService(key)) {
        if (fixed?.has(workload.uid)) continue
        const ports = workload.services.get(key)
        if (ports !== undefined) yield { workload, ports, status: workload.status }
      }
      for (const one of fixed?.values() ?? []) {
        const workload = workloads.get(one.workloadUid)
        if (workload !== undefined) yield { workload, ports: one.ports, status: one.status }
      }
    },
    endpoint,
    policy: (key) => policies.get(key),
    policiesFor: (workload) => policies.forWorkload(workload),
    workloads: () => workloads.values(),
    services: () => services.values(),
    policies: () => policies.values(),
    *stagedServices() {
      for (const [key, members] of workloads.memberships()) if (services.get(key) === undefined) yield [key, members]
    },
    apply,
    replace(content) {
      const keep = new Set([
        ...(content.workloads ?? []).map((one) => one.uid),
        ...(content.services ?? []).map(serviceKey),
      ])
      const keepPolicies = new Set((content.policies ?? []).map(policyKey))
      const gone = [...workloads.values()].map((one) => one.uid).concat([...services.values()].map(serviceKey))
      apply({
        ...content,
        removedAddresses: gone.filter((key) => !keep.has(key)),
        removedPolicies: [...policies.values()].map(policyKey).filter((key) => !keepPolicies.has(key)),
      })
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    onChange: (listener) =>
      state.subscribe(({ workloads, services, policies }) =>
        listener({ workloads: workloads.length > 0, services: services.length > 0, policies: policies.length > 0 }),
      ),
    async waitForLocalWorkload(pod, { timeoutMs = 5000, signal } = {}) {
      const present = workloads.local(pod)
      if (present !== undefined) return present
      signal?.throwIfAborted()
      return await new Promise<Workload>((resolve, reject) => {
        const end = (): void => {
          clearTimeout(timer)
          unsubscribe()
          signal?.removeEventListener('abort', abort)
        }
        const timer = setTimeout(() => {
          end()
          reject(new StateError('UNKNOWN_LOCAL_WORKLOAD', unknownLocalWorkload(pod)))
        }, timeoutMs)
        const unsubscribe = state.subscribe((change) => {
          const found = change.workloads.length === 0 ? undefined : workloads.local(pod)
          if (found === undefined) return
          end()
          resolve(found)
        })
        const abort = (): void => {
          end()
          reject(new StateError('ABORTED', unknownLocalWorkload(pod), { cause: signal?.reason }))
        }
        signal?.addEventListener('abort', abort, { once: true })
      })
    },
  }
  return state
}

/** The text of a failed wait for the workload of a pod. */
export function unknownLocalWorkload(pod: PodInfo): string {
  return `failed to fetch information about local workload: ${pod.serviceAccount}.${pod.namespace} (${pod.name})`
}

function note<T>(changes: Map<string, Replaced<T>>, key: string, old: T | undefined, now: T | undefined): void {
  const before = changes.has(key) ? changes.get(key)?.old : old
  changes.set(key, {
    key,
    ...(before === undefined ? {} : { old: before }),
    ...(now === undefined ? {} : { new: now }),
  })
}
