// Topic load-balancing.
import assert from 'node:assert/strict'
import {
  chooseBackend,
  eligibleBackends,
  gatewayDestination,
  waypointOf,
} from '../../../src/ztunnel/decisions/index.ts'
import { serviceKey } from '../../../src/ztunnel/state/index.ts'
import { type Data, meshOf, seededRandom, type TopicRunner } from './topic.ts'

export const runLoadBalancing: TopicRunner = (one, defaults) => {
  const view = meshOf(undefined, one.workloads === undefined ? defaults.base : { workloads: one.workloads }, {
    services: [one.service],
  })
  const service = view.service(serviceKey(one.service))
  assert.ok(service)
  const random = seededRandom()
  if (one.kind === 'weighted-waypoint') {
    checkShares(one, () => {
      const gateway = waypointOf(service, random)
      return gateway === undefined ? 'none' : gatewayDestination(gateway)
    })
    return
  }
  const source = { locality: { region: '', zone: '', subzone: '' }, node: '', clusterId: '', ...one.source }
  const query = { source, service, port: one.port, rules: one.rules ?? 'standard' } as const
  if (one.expect.shares !== undefined) {
    checkShares(one, () => chooseBackend(view, query, random)?.workload.uid ?? 'none')
    return
  }
  const eligible = eligibleBackends(view, query)
  assert.deepEqual(eligible.map((backend) => backend.workload.uid).sort(), [...one.expect.eligible].sort())
  if (one.expect.port !== undefined) assert.equal(eligible[0]?.port, one.expect.port)
}

function checkShares(one: Data, pick: () => string): void {
  const counts = new Map<string, number>()
  for (let run = 0; run < one.samples; run += 1) {
    const picked = pick()
    counts.set(picked, (counts.get(picked) ?? 0) + 1)
  }
  for (const [key, share] of Object.entries(one.expect.shares as Record<string, number>)) {
    const actual = (counts.get(key) ?? 0) / one.samples
    assert.ok(Math.abs(actual - share) <= one.expect.tolerance, `${key}: expected ${share}, got ${actual}`)
    counts.delete(key)
  }
  assert.deepEqual([...counts], [])
}
