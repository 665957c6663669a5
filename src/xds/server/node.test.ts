import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { create, type JsonObject } from '@bufbuild/protobuf'
import { core } from '../../proto/index.ts'
import { authorizeNode, parseNode } from './node.ts'

const nodeOf = (id: string, metadata: JsonObject = {}) => parseNode(create(core.NodeSchema, { id, metadata }))

describe('a node id', () => {
  test('gives type, addresses, proxy id and namespace', () => {
    const node = nodeOf('ztunnel~10.0.0.1~zt.istio-system~istio-system.svc.cluster.local', { NODE_NAME: 'n1' })
    assert.equal(node.type, 'ztunnel')
    assert.deepEqual(node.ips, ['10.0.0.1'])
    assert.equal(node.proxyId, 'zt.istio-system')
    assert.equal(node.namespace, 'istio-system')
  })

  test('yields to the metadata for addresses and namespace', () => {
    const node = nodeOf('sidecar~10.3.3.3~random~local', { INSTANCE_IPS: '10.3.3.3,10.4.4.4' })
    assert.deepEqual(node.ips, ['10.3.3.3', '10.4.4.4'])
    assert.equal(node.namespace, '')
    assert.equal(nodeOf('sidecar~10.3.3.3~a.b~b.svc', { NAMESPACE: 'c' }).namespace, 'c')
  })

  for (const [id, message] of [
    ['', /missing node information/],
    ['a~b~c', /missing parts/],
    ['envoy~1.1.1.1~a.b~b.svc', /invalid node type/],
    ['sidecar~nowhere~a.b~b.svc', /no valid IP address/],
  ] as const) {
    test(`"${id}" is refused`, () => assert.throws(() => nodeOf(id), { message }))
  }
})

test('metadata of a megabyte and more is refused: it would be held as long as the stream', () => {
  assert.throws(
    () => nodeOf('sidecar~10.3.3.3~a.b~b.svc', { LABELS: { a: 'x'.repeat(1024 * 1024) } }),
    /take more than/,
  )
})

describe('a node', () => {
  const node = nodeOf('ztunnel~1.1.1.1~zt.ns~ns.svc.cluster.local', { SERVICE_ACCOUNT: 'ztunnel' })
  test('may be spoken for by an identity of its namespace and service account', () => {
    authorizeNode(node, ['not-spiffe', 'spiffe://any.domain/ns/ns/sa/ztunnel'])
  })
  for (const identity of [
    'spiffe://td/ns/other/sa/ztunnel',
    'spiffe://td/ns/ns/sa/other',
    'spiffe://td/ns/ns/sa/ztunnel/more',
    'ns/ns/sa/ztunnel',
  ]) {
    test(`may not be spoken for by ${identity}`, () => {
      assert.throws(() => authorizeNode(node, [identity]), /authorization failed/)
    })
  }
  test('without any identity is nobody’s', () => {
    assert.throws(() => authorizeNode(nodeOf('sidecar~1.1.1.1~a~local'), []), /authorization failed/)
  })
})
