import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGraph } from '../collections/index.ts'
import { logIndexWarnings } from './index-warnings.ts'

test('what the index cannot take as it is meant is said once, and again when it is something else', () => {
  const graph = createGraph({ report: (report) => assert.fail(JSON.stringify(report)) })
  const invalidPolicyValues = graph.input<readonly string[]>('invalid')
  const differingPorts = graph.input<readonly string[]>('ports')
  const unusedGateways = graph.input<{ network: string; gateway: string; reason: string }>('gateways')
  const told: string[] = []
  const warn = (message: string, fields = {}) => void told.push(`${message}: ${Object.values(fields).join(', ')}`)
  invalidPolicyValues.set('c1/ns1/p', ['ports: "http"'])
  const end = logIndexWarnings({ invalidPolicyValues, differingPorts, unusedGateways }, { warn })
  const taken = () => told.splice(0)

  assert.deepEqual(taken(), ['values of an AuthorizationPolicy cannot be read: ns1/p, ports: "http"'])
  invalidPolicyValues.set('c1/ns1/p', ['ports: "http"'])
  assert.deepEqual(taken(), [])
  invalidPolicyValues.set('c1/ns1/p', ['ports: "x"', 'ipBlocks: "y"'])
  assert.deepEqual(taken(), ['values of an AuthorizationPolicy cannot be read: ns1/p, ports: "x"; ipBlocks: "y"'])
  invalidPolicyValues.delete('c1/ns1/p')
  differingPorts.set('ns1/svc', ['c2', 'c3'])
  unusedGateways.set('n 0', { network: 'n', gateway: 'g:1', reason: 'why' })
  assert.deepEqual(taken(), [
    'a service has other ports in other clusters; those here count: ns1/svc, c2 c3',
    'a gateway of mesh networks is not used by node proxies: n, g:1, why',
  ])
  end()
  differingPorts.set('ns1/svc', ['c4'])
  assert.deepEqual(taken(), [])
})
