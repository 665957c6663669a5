// Policies by name, and by what they apply to.
import type { Policy, Workload } from '../model.ts'
import { policyKey } from './view.ts'

export interface PolicyIndex {
  get(key: string): Policy | undefined
  /** Those of the namespace (global: ''), by key. */
  ofNamespace(namespace: string): Iterable<Policy>
  forWorkload(workload: Workload): Iterable<Policy>
  values(): Iterable<Policy>
  put(policy: Policy): Policy | undefined
  remove(key: string): Policy | undefined
}

export function createPolicyIndex(): PolicyIndex {
  const byKey = new Map<string, Policy>()
  const byNamespace = new Map<string, Map<string, Policy>>()

  function remove(key: string): Policy | undefined {
    const old = byKey.get(key)
    if (old === undefined) return undefined
    byKey.delete(key)
    const place = placeOf(old)
    const members = place === undefined ? undefined : byNamespace.get(place)
    if (place !== undefined && members?.delete(key) && members.size === 0) byNamespace.delete(place)
    return old
  }

  const ofNamespace = (namespace: string): Iterable<Policy> => byNamespace.get(namespace)?.values() ?? []

  return {
    get: (key) => byKey.get(key),
    ofNamespace,
    *forWorkload(workload) {
      if (workload.namespace !== '') yield* ofNamespace(workload.namespace)
      yield* ofNamespace('')
      for (const key of workload.authorizationPolicies) {
        const policy = byKey.get(key)
        if (policy?.scope === 'WorkloadSelector') yield policy
      }
    },
    values: () => byKey.values(),
    put(policy) {
      const key = policyKey(policy)
      const old = remove(key)
      byKey.set(key, policy)
      const place = placeOf(policy)
      if (place === undefined) return old
      const members = byNamespace.get(place) ?? new Map<string, Policy>()
      members.set(key, policy)
      byNamespace.set(place, members)
      return old
    },
    remove,
  }
}

/** The namespace whose workloads a policy applies to, '' for all; undefined when only workloads that name it have it. */
function placeOf(policy: Policy): string | undefined {
  switch (policy.scope) {
    case 'Global':
      return ''
    case 'Namespace':
      return policy.namespace
    case 'WorkloadSelector':
      return undefined
  }
}
