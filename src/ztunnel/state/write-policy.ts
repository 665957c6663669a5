// Policies into shared memory, and under what must hold of a connection for them to match.
import type { Transaction } from '../../shared-memory/index.ts'
import type { Policy } from '../model.ts'
import type { FieldWriter } from './fields.ts'
import { conditionsOf } from './policy-conditions.ts'
import { storePolicy } from './stored-policy.ts'
import { conditionKey, ordered, scopeKey, tables } from './tables.ts'
import { policyKey } from './view.ts'

export interface PolicyWriter {
  /** `old`: what the transaction shows now under its key. */
  put(transaction: Transaction, policy: Policy, old: Policy | undefined): void
  remove(transaction: Transaction, old: Policy): void
}

export function createPolicyWriter(fields: FieldWriter, nextOrder: () => number): PolicyWriter {
  return {
    put(transaction, policy, old) {
      const key = policyKey(policy)
      const leaf = transaction.put(tables.policies, key, storePolicy(fields, policy))
      const conditions = placesOf(policy)
      if (old !== undefined) leave(transaction, old, conditions)
      const order = nextOrder()
      for (const condition of conditions) {
        transaction.putIn(tables.policyConditions, condition, key, ordered(leaf, order))
      }
      countAllow(transaction, policy, 1)
    },
    remove(transaction, old) {
      leave(transaction, old, new Set())
      transaction.remove(tables.policies, policyKey(old))
    },
  }
}

function leave(transaction: Transaction, old: Policy, kept: ReadonlySet<string>): void {
  const key = policyKey(old)
  for (const condition of placesOf(old)) {
    if (!kept.has(condition)) transaction.removeFrom(tables.policyConditions, condition, key)
  }
  countAllow(transaction, old, -1)
}

function placesOf(policy: Policy): ReadonlySet<string> {
  const scope = scopeOf(policy)
  if (scope === undefined) return new Set()
  return new Set([...conditionsOf(policy)].map((condition) => conditionKey(scope, condition)))
}

function countAllow(transaction: Transaction, policy: Policy, change: 1 | -1): void {
  const scope = scopeOf(policy)
  if (scope === undefined || policy.action !== 'Allow') return
  const leaf = transaction.find(tables.allowPolicies, scope)
  const [enforced, dryRun] = leaf === 0 ? [0, 0] : [transaction.wordOf(leaf, 0), transaction.wordOf(leaf, 1)]
  const counts = policy.dryRun ? [enforced, dryRun + change] : [enforced + change, dryRun]
  if (counts.every((count) => count === 0)) transaction.remove(tables.allowPolicies, scope)
  else transaction.putWords(tables.allowPolicies, scope, counts)
}

/**
 * Whose policy it is, undefined when only workloads that name it have it. One of a namespace that does not say of which allows nothing to
 * the workloads of others; what it denies, it denies to all.
 */
function scopeOf(policy: Policy): string | undefined {
  switch (policy.scope) {
    case 'Global':
      return scopeKey(undefined)
    case 'Namespace':
      return scopeKey(policy.namespace === '' && policy.action === 'Deny' ? undefined : policy.namespace)
    case 'WorkloadSelector':
      return undefined
  }
}
