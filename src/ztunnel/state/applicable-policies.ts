// The policies of a workload that a connection may concern, looked up by what is known of it.
import type { TableView } from '../../shared-memory/index.ts'
import type { Policy, Workload } from '../model.ts'
import { createLists, type Decoding, type Entries, type Located, readEntries } from './lists.ts'
import type { Loaded } from './loaded.ts'
import { conditionsMet, type PolicyFacts } from './policy-conditions.ts'
import { conditionKey, scopeKey, tables } from './tables.ts'
import { type ApplicablePolicies, policyKey } from './view.ts'

/** `mostKept`: policies that stay decoded. */
export function createApplicablePolicies(
  view: TableView,
  policies: Loaded<Policy>,
  mostKept: number,
): (workload: Pick<Workload, 'namespace' | 'authorizationPolicies'>, facts: PolicyFacts) => ApplicablePolicies {
  const lists = createLists<Entries<Policy>>(mostKept)
  const decoding: Decoding<Policy> = { load: policies.peek, keyOf: policyKey }

  function under(scope: string, condition: string): readonly Located<Policy>[] {
    const key = conditionKey(scope, condition)
    const map = view.find(tables.policyConditions, key)
    if (map === 0) return none
    return lists.get(key, view.generationOf(map), (before) => readEntries(view, map, before, decoding)).located
  }

  /** In the order in which they came; one may be found under several conditions. */
  function ofScope(scope: string, conditions: readonly string[]): readonly Located<Policy>[] {
    const found = conditions.map((condition) => under(scope, condition)).filter((list) => list.length > 0)
    const [first = none, ...others] = found
    if (others.length === 0) return first
    const all = new Map(found.flatMap((list) => list.map((one) => [one.place, one] as const)))
    return [...all.values()].sort((a, b) => a.order - b.order)
  }

  return (workload, facts) => {
    const conditions = conditionsMet(facts)
    const found: Policy[] = []
    let allow = 0
    let dryRunAllow = 0
    for (const scope of [scopeKey(workload.namespace), scopeKey(undefined)]) {
      for (const { value } of ofScope(scope, conditions)) found.push(value)
      const counts = view.find(tables.allowPolicies, scope)
      if (counts === 0) continue
      allow += view.wordOf(counts, 0)
      dryRunAllow += view.wordOf(counts, 1)
    }
    for (const key of workload.authorizationPolicies) {
      const policy = policies.get(view.find(tables.policies, key))
      if (policy?.scope !== 'WorkloadSelector') continue
      found.push(policy)
      if (policy.action !== 'Allow') continue
      if (policy.dryRun) dryRunAllow += 1
      else allow += 1
    }
    return { policies: found, allow, dryRunAllow }
  }
}

const none: readonly never[] = []
