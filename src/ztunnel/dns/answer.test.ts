import assert from 'node:assert/strict'
import { test } from 'node:test'
import { meshOf } from '../../../test/support/mesh.ts'
import { answer, type DnsDecision } from './answer.ts'

const state = meshOf(`
workloads:
- {uid: client, name: client, namespace: ns, workloadIps: [10.0.0.1, 'fd00::1'], services: {}}
- {uid: a, name: a, namespace: ns, workloadIps: [10.0.0.2, 'fd00::2'], services: {ns/four.ns.svc.cluster.local: {}, ns/six.ns.svc.cluster.local: {}, ns/both.ns.svc.cluster.local: {}}}
- {uid: b, name: b, namespace: ns, workloadIps: ['fd00::3', 10.0.0.3], services: {ns/four.ns.svc.cluster.local: {}, ns/six.ns.svc.cluster.local: {}, ns/both.ns.svc.cluster.local: {}}}
services:
- {name: four, namespace: ns, hostname: four.ns.svc.cluster.local, vips: [], ports: {}, ipFamilies: IPv4}
- {name: six, namespace: ns, hostname: six.ns.svc.cluster.local, vips: [], ports: {}, ipFamilies: IPv6}
- {name: both, namespace: ns, hostname: both.ns.svc.cluster.local, vips: [], ports: {}, ipFamilies: Dual}
- {name: none, namespace: ns, hostname: none.ns.svc.cluster.local, vips: [], ports: {}}`)

function ask(name: string, type: string, ipv6Enabled = true): DnsDecision {
  const source = state.workload('client')
  assert.ok(source)
  const options = { clusterDomain: 'cluster.local', searchDomains: [], ipv6Enabled, random: () => 0 }
  return answer(state, source, { name: `${name}.ns.svc.cluster.local`, type }, options)
}

const addresses = (name: string, type: 'A' | 'AAAA'): readonly string[] => {
  const decision = ask(name, type)
  assert.equal(decision.kind, 'answer')
  return decision.kind === 'answer' ? decision.records.map(({ data }) => data).sort() : []
}

test('pods of both families behind a headless service of one are answered in its family alone', () => {
  assert.deepEqual(addresses('four', 'A'), ['10.0.0.2', '10.0.0.3'])
  assert.deepEqual(addresses('four', 'AAAA'), [])
  assert.deepEqual(addresses('six', 'AAAA'), ['fd00::2', 'fd00::3'])
  assert.deepEqual(addresses('six', 'A'), [])
  assert.deepEqual(addresses('both', 'A'), ['10.0.0.2', '10.0.0.3'])
  assert.deepEqual(addresses('both', 'AAAA'), ['fd00::2', 'fd00::3'])
})

test('a decision says why', () => {
  const reason = (name: string, type: string, ipv6Enabled = true) => {
    const decision = ask(name, type, ipv6Enabled)
    return [decision.kind, decision.reason]
  }
  assert.deepEqual(reason('four', 'A'), ['answer', 'success'])
  assert.deepEqual(reason('none', 'A'), ['answer', 'no records'])
  assert.deepEqual(reason('four', 'AAAA'), ['answer', 'service does not support this record type'])
  assert.deepEqual(reason('six', 'AAAA', false), ['answer', 'service does not support this record type'])
  assert.deepEqual(reason('four', 'TXT'), ['forward', 'not an address query'])
  assert.deepEqual(reason('unknown', 'A'), ['forward', 'no service has the name'])
})
