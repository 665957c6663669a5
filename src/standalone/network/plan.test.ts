import assert from 'node:assert/strict'
import test from 'node:test'
import { addressAt, formatCidr, overlaps, parseCidr, subrange } from './cidr.ts'
import { instanceId, planNetwork } from './plan.ts'

test('ranges', () => {
  assert.equal(formatCidr(parseCidr('10.1.2.3/16')), '10.1.0.0/16')
  assert.equal(formatCidr(subrange(parseCidr('10.244.0.0/16'), 24, 5)), '10.244.5.0/24')
  assert.equal(addressAt(parseCidr('10.96.0.0/16'), 10), '10.96.0.10')
  assert.ok(overlaps(parseCidr('10.0.0.0/8'), parseCidr('10.244.0.0/16')))
  assert.ok(!overlaps(parseCidr('10.1.0.0/16'), parseCidr('10.2.0.0/16')))
  assert.throws(() => parseCidr('10.256.0.0/16'), RangeError)
})

test('the usual ranges are taken when they are free', () => {
  const plan = planNetwork('/var/lib/lateen', 2, ['192.168.1.0/24'])
  assert.deepEqual([plan.clusterCidr, plan.serviceCidr, plan.dnsIP], ['10.244.0.0/16', '10.96.0.0/16', '10.96.0.10'])
  assert.deepEqual(
    plan.nodes.map((node) => [node.name, node.podCidr]),
    [
      ['node-1', '10.244.0.0/24'],
      ['node-2', '10.244.1.0/24'],
    ],
  )
})

test('a range that a route of the host touches is not taken', () => {
  const plan = planNetwork('/x', 1, ['10.244.0.0/16', '10.96.3.0/24', '172.28.0.0/15'])
  for (const range of [plan.clusterCidr, plan.serviceCidr, plan.nodeCidr]) {
    for (const used of ['10.244.0.0/16', '10.96.3.0/24', '172.28.0.0/15']) {
      assert.ok(!overlaps(parseCidr(range), parseCidr(used)), `${range} and ${used}`)
    }
  }
  assert.ok(!overlaps(parseCidr(plan.clusterCidr), parseCidr(plan.serviceCidr)))
})

test('the ranges of the last time are kept', () => {
  const first = planNetwork('/x', 1, ['10.244.0.0/16'])
  assert.equal(planNetwork('/x', 1, [], first).clusterCidr, first.clusterCidr)
})

test('names on the host are short and differ between state directories', () => {
  const plan = planNetwork('/x', 200, [])
  assert.notEqual(instanceId('/x'), instanceId('/y'))
  for (const name of [plan.bridge, ...plan.nodes.map((node) => node.hostInterface)]) assert.ok(name.length <= 15, name)
})

test('a number of nodes that cannot be is refused', () => {
  assert.throws(() => planNetwork('/x', 0, []), { code: 'USAGE' })
})
