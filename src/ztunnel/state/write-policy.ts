// Policies into shared memory, and under the namespace they apply to.
import type { Transaction } from '../../shared-memory/index.ts'
import type { Policy } from '../model.ts'
import type { FieldWriter } from './fields.ts'
import { storePolicy } from './stored-policy.ts'
import { ordered, tables } from './tables.ts'
import { policyKey } from './view.ts'

export interface PolicyWriter {
  /** `old`: what the transaction shows now under its key. */
  put(transaction: Transaction, policy: Policy, old: Policy | undefined): void
  remove(transaction: Transaction, old: Policy): void
}

export function createPolicyWriter(fields: FieldWriter, nextOrder: () => number): PolicyWriter {
  function leave(transaction: Transaction, old: Policy, now: string | undefined): void {
    const namespace = namespaceOf(old)
    if (namespace !== undefined && namespace !== now) {
      transaction.removeFrom(tables.policyNamespaces, namespace, policyKey(old))
    }
  }
  return {
    put(transaction, policy, old) {
      const key = policyKey(policy)
      const leaf = transaction.put(tables.policies, key, storePolicy(fields, policy))
      const namespace = namespaceOf(policy)
      if (old !== undefined) leave(transaction, old, namespace)
      if (namespace === undefined) return
      transaction.putIn(tables.policyNamespaces, namespace, key, ordered(leaf, nextOrder()))
    },
    remove(transaction, old) {
      leave(transaction, old, undefined)
      transaction.remove(tables.policies, policyKey(old))
    },
  }
}

/** The namespace whose workloads a policy applies to, '' for all; undefined when only workloads that name it have it. */
function namespaceOf(policy: Policy): string | undefined {
  switch (policy.scope) {
    case 'Global':
      return ''
    case 'Namespace':
      return policy.namespace
    case 'WorkloadSelector':
      return undefined
  }
}
