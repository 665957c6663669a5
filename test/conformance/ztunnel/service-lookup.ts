// Topic service-lookup.
import assert from 'node:assert/strict'
import { type MeshState, serviceKey } from '../../../src/ztunnel/state/index.ts'
import { type Data, meshOf, type TopicRunner } from './topic.ts'

export const runServiceLookup: TopicRunner = (one) => {
  const state = meshOf(undefined, { services: one.services })
  check(state, one.lookups)
  if (one.afterRemoval === undefined) return
  state.apply({ removedAddresses: one.afterRemoval.remove })
  check(state, one.afterRemoval.lookups)
}

function check(state: MeshState, lookups: readonly Data[]): void {
  for (const { vip, hostname, clientNamespace, result } of lookups) {
    const client = clientNamespace ?? undefined
    const slash = vip?.indexOf('/')
    const found =
      vip === undefined
        ? state.serviceByHostname(hostname, client)
        : state.serviceByVip(vip.slice(0, slash), vip.slice(slash + 1), client)
    assert.equal(found === undefined ? null : serviceKey(found), result, `${vip ?? hostname} for ${clientNamespace}`)
  }
}
