import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readMeshNetworks, repeatedRegistries } from './mesh-networks.ts'

describe('mesh networks', () => {
  test('are none where nothing is written', () => {
    assert.deepEqual(readMeshNetworks('', 'f'), { kind: 'read', networks: { networks: {} } })
  })

  test('are read with endpoints and gateways', () => {
    const yaml =
      'networks: {n1: {endpoints: [{fromRegistry: c1}, {fromCidr: 10.0.0.0/8}], gateways: [{address: 1.2.3.4, port: 15443}]}}'
    assert.equal(readMeshNetworks(yaml, 'f').kind, 'read')
  })

  test('a list without a value is an empty one', () => {
    const reading = readMeshNetworks('networks: {n1: {endpoints: , gateways: }}', 'f')
    assert.deepEqual(reading, { kind: 'read', networks: { networks: { n1: {} } } })
  })

  test('name the clusters that several of them claim', () => {
    const endpoints = [{ fromRegistry: 'c1' }]
    assert.deepEqual(repeatedRegistries({ networks: { n1: { endpoints }, n2: { endpoints }, n3: {} } }), [
      { registry: 'c1', counts: 'n1' },
    ])
  })

  for (const [yaml, problem] of [
    ['networks: [a]', 'f: networks: expected a mapping by network'],
    ['networks: {n: 1}', 'f: networks.n: expected a mapping'],
    [
      'networks: {n: {endpoints: [{fromCidr: 10.0.0.0}]}}',
      'f: networks.n.endpoints[0]: expected fromRegistry or a fromCidr such as 10.0.0.0/8',
    ],
    ['networks: {n: {gateways: [{port: 1}]}}', 'f: networks.n.gateways[0]: expected registryServiceName or address'],
    ['networks: {n: {gateways: [{address: a, port: 0}]}}', 'f: networks.n.gateways[0].port: expected a port'],
  ] as const) {
    test(`are refused with a reason: ${yaml}`, () => {
      assert.deepEqual(readMeshNetworks(yaml, 'f'), { kind: 'invalid', problem })
    })
  }
})
