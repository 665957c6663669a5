import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { entryName, entryOfGroup, type RegisteringProxy, type WorkloadGroup } from './entry.ts'

const proxy = (metadata: object = {}, more: Partial<RegisteringProxy> = {}): RegisteringProxy => ({
  proxyId: 'vm.ns',
  namespace: 'ns',
  ips: ['10.0.0.1', 'fd00::1'],
  locality: '',
  metadata: { ...metadata },
  identities: [],
  ...more,
})

const group = (spec: WorkloadGroup['spec']): WorkloadGroup => ({
  apiVersion: 'networking.istio.io/v1',
  kind: 'WorkloadGroup',
  metadata: { namespace: 'ns', name: 'wg', uid: 'u', labels: { of: 'the group object' } },
  ...(spec === undefined ? {} : { spec }),
})

const connection = { controller: 'istiod-1', connectedAt: '2026-01-02T03:04:05.000Z' }

describe('the entry of a proxy of a group', () => {
  test('is named by group, address and network, from the end where that is long', () => {
    assert.equal(entryName('wg', proxy({ NETWORK: 'nw1' })), 'wg-10.0.0.1-nw1')
    assert.equal(entryName('wg', proxy({}, { ips: ['fd00::1'] })), 'wg-fd00--1')
    const long = entryName(`x${'-'.repeat(20)}${'y'.repeat(240)}`, proxy())
    assert.ok(long.length <= 253 && long.endsWith('y-10.0.0.1') && long.startsWith('y'))
  })

  test('has the labels of template, group and proxy, the later ones first', () => {
    const spec = { metadata: { labels: { foo: 'bar', a: 'group' } }, template: { labels: { app: 'a', a: 'template' } } }
    const { metadata, spec: made } = entryOfGroup(
      group(spec),
      proxy({ LABELS: { merge: 'me', 'istio-locality': 'r/z', bad: 1 }, NETWORK: 'nw1' }),
      connection,
    )
    assert.equal(metadata.name, 'wg-10.0.0.1-nw1')
    assert.deepEqual(metadata.labels, { app: 'a', foo: 'bar', a: 'group', merge: 'me' })
    assert.deepEqual(made?.labels, metadata.labels)
    assert.equal(made?.network, 'nw1')
  })

  test('says how it is reached, where it is, and who holds it', () => {
    const spec = {
      metadata: { annotations: { note: 'x', 'istio.io/workloadController': 'forged' } },
      template: { serviceAccount: 'vm', locality: 'group', network: 'own', ports: { http: 8080 } },
      probe: {},
    }
    const made = entryOfGroup(group(spec), proxy({ ENABLE_HBONE: 'true' }, { locality: 'r/z' }), connection)
    assert.deepEqual(made.spec, {
      address: '10.0.0.1',
      serviceAccount: 'vm',
      locality: 'r/z',
      network: 'own',
      ports: { http: 8080 },
      labels: { 'networking.istio.io/tunnel': 'http' },
    })
    assert.deepEqual(made.metadata.annotations, {
      note: 'x',
      'proxy.istio.io/health-checks-enabled': 'true',
      'istio.io/autoRegistrationGroup': 'wg',
      'istio.io/workloadController': 'istiod-1',
      'istio.io/connectedAt': connection.connectedAt,
    })
    const [owner] = made.metadata.ownerReferences ?? []
    assert.deepEqual([owner?.kind, owner?.name, owner?.uid, owner?.controller], ['WorkloadGroup', 'wg', 'u', true])
    const told = entryOfGroup(
      group({ template: { labels: { 'networking.istio.io/tunnel': 'none' } } }),
      proxy({ ENABLE_HBONE: true }),
      connection,
    )
    assert.equal(told.spec?.labels?.['networking.istio.io/tunnel'], 'none')
  })
})
