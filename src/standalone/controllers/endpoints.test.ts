import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endpointsOf } from './endpoints.ts'
import type { Pod, Service } from './objects.ts'

const service = (spec: Service['spec']): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'a' },
  ...(spec === undefined ? {} : { spec }),
})

function pod(
  name: string,
  ip: string,
  options: { ready?: boolean; deleted?: boolean; port?: number; phase?: string } = {},
): Pod {
  const { ready = true, deleted = false, port = 8080, phase = 'Running' } = options
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'a', uid: name, ...(deleted ? { deletionTimestamp: '2030-01-01T00:00:00Z' } : {}) },
    spec: {
      nodeName: 'n1',
      containers: [{ name: 'c', image: 'host', ports: [{ name: 'http', containerPort: port }] }],
    },
    status: { phase, podIP: ip, podIPs: [{ ip }], conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  }
}

const http = { name: 'http', port: 80, targetPort: 'http', protocol: 'TCP' }

test('conditions tell ready, serving and terminating apart', () => {
  const pods = [pod('a', '10.0.0.1'), pod('b', '10.0.0.2', { ready: false }), pod('c', '10.0.0.3', { deleted: true })]
  const [slice] = endpointsOf(service({ ports: [http] }), pods, new Map())
  assert.deepEqual(
    slice?.endpoints.map(({ addresses, conditions }) => [addresses[0], conditions]),
    [
      ['10.0.0.1', { ready: true, serving: true, terminating: false }],
      ['10.0.0.2', { ready: false, serving: false, terminating: false }],
      ['10.0.0.3', { ready: false, serving: true, terminating: true }],
    ],
  )
})

test('a named port that differs between pods makes a slice for each number', () => {
  const slices = endpointsOf(
    service({ ports: [http] }),
    [pod('a', '10.0.0.1'), pod('b', '10.0.0.2', { port: 9090 })],
    new Map(),
  )
  assert.deepEqual(
    slices.map(({ ports, endpoints }) => [ports[0]?.port, endpoints.length]),
    [
      [8080, 1],
      [9090, 1],
    ],
  )
})

test('publishNotReadyAddresses counts every pod as ready', () => {
  const [slice] = endpointsOf(
    service({ ports: [http], publishNotReadyAddresses: true }),
    [pod('a', '10.0.0.1', { ready: false })],
    new Map(),
  )
  assert.deepEqual(slice?.endpoints[0]?.conditions, { ready: true, serving: false, terminating: false })
})

test('ended pods and pods without an address of the family are left out', () => {
  const pods = [pod('a', '10.0.0.1', { phase: 'Succeeded' }), pod('b', '')]
  assert.deepEqual(endpointsOf(service({ ports: [http] }), pods, new Map()), [
    { addressType: 'IPv4', endpoints: [], ports: [] },
  ])
  assert.deepEqual(
    endpointsOf(service({ ports: [http], ipFamilies: ['IPv6'] }), [pod('c', '10.0.0.1')], new Map()).map(
      ({ addressType, endpoints }) => [addressType, endpoints.length],
    ),
    [['IPv6', 0]],
  )
})

test('more than a hundred endpoints are split', () => {
  const pods = Array.from({ length: 230 }, (_, index) =>
    pod(`p${String(index).padStart(3, '0')}`, `10.0.${index >> 8}.${index & 255}`),
  )
  assert.deepEqual(
    endpointsOf(service({ ports: [http] }), pods, new Map()).map(({ endpoints }) => endpoints.length),
    [100, 100, 30],
  )
})
