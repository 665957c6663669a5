import assert from 'node:assert/strict'
import test from 'node:test'
import { ConfigError, containerEnvironment, type EnvironmentSources, parseQuantity } from './environment.ts'
import { expandReferences } from './expand.ts'
import type { Container, Service } from './types.ts'

const service = (namespace: string, name: string, clusterIP: string): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace, name },
  spec: { clusterIP, ports: [{ name: 'web-ui', port: 80 }] },
})

const sources: EnvironmentSources = {
  pod: {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'shop', uid: 'u', labels: { app: 'web' } },
    spec: { containers: [], serviceAccountName: 'seller' },
  },
  nodeName: 'node-1',
  hostIPs: ['172.28.0.11'],
  podIPs: ['10.244.0.2'],
  configMap: (name) =>
    name === 'cfg' ? { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { a: '1', b: '2' } } : undefined,
  secret: (name) =>
    name === 'key' ? { apiVersion: 'v1', kind: 'Secret', metadata: { name }, data: { pw: 'c2VjcmV0' } } : undefined,
  services: [
    service('shop', 'front-end', '10.96.0.7'),
    service('other', 'back', '10.96.0.8'),
    service('default', 'kubernetes', '10.96.0.1'),
    service('shop', 'headless', 'None'),
  ],
  resources: { cpus: 4, memoryBytes: 8 * 2 ** 30 },
}

const environmentOf = (more: Partial<Container>) => containerEnvironment({ name: 'c', image: 'host', ...more }, sources)

test('references are replaced, escaped ones and unknown ones stay', () => {
  const variables = new Map([['A', 'x']])
  assert.equal(expandReferences('$(A)-$$(A)-$(B)-$A', variables), 'x-$(A)-$(B)-$A')
})

test('services of the own namespace and the API server are told, others and headless ones are not', () => {
  const variables = environmentOf({})
  assert.equal(variables.get('FRONT_END_SERVICE_HOST'), '10.96.0.7')
  assert.equal(variables.get('FRONT_END_SERVICE_PORT_WEB_UI'), '80')
  assert.equal(variables.get('KUBERNETES_SERVICE_HOST'), '10.96.0.1')
  assert.equal(variables.has('BACK_SERVICE_HOST'), false)
  assert.equal(variables.has('HEADLESS_SERVICE_HOST'), false)
})

test('a variable may refer to those before it and to those of envFrom', () => {
  const variables = environmentOf({
    envFrom: [{ prefix: 'C_', configMapRef: { name: 'cfg' } }],
    env: [
      { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
      { name: 'PATH_OF_NODE', value: '/run/$(NODE_NAME)/$(C_a)' },
    ],
  })
  assert.equal(variables.get('PATH_OF_NODE'), '/run/node-1/1')
})

const fields: readonly [string, string][] = [
  ['metadata.name', 'p'],
  ['metadata.namespace', 'shop'],
  ["metadata.labels['app']", 'web'],
  ["metadata.annotations['none']", ''],
  ['metadata.labels', 'app="web"'],
  ['spec.serviceAccountName', 'seller'],
  ['status.podIP', '10.244.0.2'],
  ['status.hostIP', '172.28.0.11'],
]
for (const [fieldPath, expected] of fields) {
  test(`field ${fieldPath} is ${JSON.stringify(expected)}`, () => {
    assert.equal(environmentOf({ env: [{ name: 'V', valueFrom: { fieldRef: { fieldPath } } }] }).get('V'), expected)
  })
}

test('a secret is decoded, an optional missing one leaves no variable', () => {
  const variables = environmentOf({
    env: [
      { name: 'PW', valueFrom: { secretKeyRef: { name: 'key', key: 'pw' } } },
      { name: 'NO', valueFrom: { secretKeyRef: { name: 'key', key: 'no', optional: true } } },
    ],
  })
  assert.equal(variables.get('PW'), 'secret')
  assert.equal(variables.has('NO'), false)
})

test('a missing source keeps the container from starting', () => {
  const missing = (valueFrom: NonNullable<NonNullable<Container['env']>[number]['valueFrom']>) => () =>
    environmentOf({ env: [{ name: 'V', valueFrom }] })
  assert.throws(missing({ configMapKeyRef: { name: 'no', key: 'a' } }), ConfigError)
  assert.throws(missing({ configMapKeyRef: { name: 'cfg', key: 'z' } }), /couldn't find key z/)
  assert.throws(() => environmentOf({ envFrom: [{ secretRef: { name: 'no' } }] }), ConfigError)
})

test('a resource without a limit is the machine', () => {
  const env = (resource: string, divisor?: string) => [
    { name: 'V', valueFrom: { resourceFieldRef: { resource, ...(divisor && { divisor }) } } },
  ]
  assert.equal(environmentOf({ env: env('limits.cpu') }).get('V'), '4')
  const limits = { cpu: '1500m', memory: '64Mi' }
  assert.equal(environmentOf({ env: env('limits.cpu'), resources: { limits } }).get('V'), '2')
  assert.equal(environmentOf({ env: env('limits.memory', '1Mi'), resources: { limits } }).get('V'), '64')
})

test('quantities', () => {
  assert.deepEqual(['500m', '1.5', '2Ki', '3M', '1e3', 'x'].map(parseQuantity), [0.5, 1.5, 2048, 3e6, 1000, Number.NaN])
})
