import assert from 'node:assert/strict'
import { test } from 'node:test'
import { warnOfOtherNetworks } from './other-network.ts'
import { createMeshState, parseLocalFile } from './state/index.ts'

const workload = (uid: string, network: string, node = 'n1') =>
  `{uid: ${uid}, name: ${uid}, namespace: ns, workloadIps: [], services: {}, network: '${network}', node: ${node}}`

test('each other network that a workload of this node is on is told once', () => {
  const state = createMeshState({ node: 'n1' })
  const warnings: string[] = []
  const end = warnOfOtherNetworks(state, { network: 'here', node: 'n1' }, (text) => warnings.push(text))
  const push = (...workloads: string[]) => state.apply(parseLocalFile(`workloads: [${workloads.join(', ')}]`))
  push(workload('a', 'here'), workload('b', 'there', 'n2'))
  assert.deepEqual(warnings, [])
  push(workload('c', 'there'), workload('d', 'there'), workload('e', ''))
  push(workload('f', 'there'))
  assert.equal(warnings.length, 2)
  assert.match(warnings[0] ?? '', /^c of this node is on network 'there', this proxy on 'here': /)
  assert.match(warnings[1] ?? '', /^e of this node is on network ''/)
  end()
  push(workload('g', 'elsewhere'))
  assert.equal(warnings.length, 2)
})
