// Tables of identities and of impersonation.
import assert from 'node:assert/strict'
import {
  buildSpiffe,
  createNodeAuthorizer,
  expandWithAliases,
  parseSpiffe,
  parseTrustedAccounts,
  servingNames,
} from '../../../src/ca/index.ts'
import { assertOutcome, list, outcomeOf, type RunTable, text } from './data.ts'
import { kubernetesCallerOf, podsOf } from './pods.ts'

const spiffeParse: RunTable = async (row, expected) => {
  const actual = await outcomeOf(() => {
    const { trustDomain, namespace, serviceAccount } = parseSpiffe(text(row.in))
    return [trustDomain, namespace, serviceAccount]
  })
  assertOutcome(actual, expected)
}

const spiffeBuild: RunTable = async (row, expected) => {
  const { trustDomain, namespace, serviceAccount } = row
  const parts = { trustDomain: text(trustDomain), namespace: text(namespace), serviceAccount: text(serviceAccount) }
  assertOutcome(await outcomeOf(() => buildSpiffe(parts)), expected)
}

const spiffeExpand: RunTable = (row, expected) => {
  const actual = expandWithAliases(list(row.ids), list(row.aliases))
  assert.deepEqual(new Set(actual), new Set(list(expected)))
}

const nodeAuthorization: RunTable = async (row, expected, input) => {
  const authorize = createNodeAuthorizer({
    trustedAccounts: parseTrustedAccounts(list(row.trustedNodeAccounts).join(',')),
    trustDomains: () => [text(input.trustDomain)],
    pods: podsOf(row.pods),
  })
  const request = { caller: kubernetesCallerOf(row.caller), requested: text(row.requested) }
  const outcome = await outcomeOf(() => {
    authorize(request)
    return 'ok'
  })
  if (expected === 'ok' || expected === 'error') assertOutcome(outcome, expected)
  else assert.ok(typeof outcome === 'object' && outcome.error.includes(text(expected)), JSON.stringify(outcome))
}

const servingNamesTable: RunTable = (row, expected, input) => {
  const names = servingNames({
    namespace: text(input.namespace),
    discoveryAddress: text(input.discoveryAddress),
    customHosts: text(row.customHosts).split(','),
    revision: text(row.revision),
  })
  assert.deepEqual(names, expected)
}

export const identityKinds = {
  spiffeParse,
  spiffeBuild,
  spiffeExpand,
  nodeAuthorization,
  servingNames: servingNamesTable,
}
