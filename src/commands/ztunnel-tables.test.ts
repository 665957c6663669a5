import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ZtunnelDump } from './ztunnel-dump.ts'
import { certificateTable, connectionTable, policyTable, serviceTable, workloadTable } from './ztunnel-tables.ts'

const workload = (name: string, ip: string, more: object = {}) => ({
  uid: `c//Pod/app/${name}`,
  name,
  namespace: 'app',
  workloadIps: [ip],
  node: 'n1',
  protocol: 'HBONE',
  status: 'Healthy',
  ...more,
})
const dump: ZtunnelDump = {
  workloads: [
    workload('b', '10.0.0.2', { status: 'Unhealthy', waypoint: { destination: 'app/wp.app.svc.cluster.local' } }),
    workload('a', '10.0.0.1', { waypoint: { destination: 'net/10.9.9.9' } }),
  ],
  services: {
    one: {
      name: 'web',
      namespace: 'app',
      hostname: 'web.app.svc.cluster.local',
      vips: ['net/10.1.0.1'],
      endpoints: { x: { workloadUid: 'c//Pod/app/a' }, y: { workloadUid: 'c//Pod/app/b' } },
    },
    two: { name: 'wp', namespace: 'app', hostname: 'wp.app.svc.cluster.local', vips: ['net/10.1.0.2'] },
  },
}
const lines = (table: string): string[] =>
  table
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/ {2,}/g, ' | '))

describe('tables of a node proxy', () => {
  test('workloads by name, with their waypoints', () => {
    const list = dump.workloads as NonNullable<Parameters<typeof workloadTable>[0]>
    assert.deepEqual(lines(workloadTable(list, dump)), [
      'NAMESPACE | POD NAME | ADDRESS | NODE | WAYPOINT | PROTOCOL',
      'app | a | 10.0.0.1 | n1 | NA | HBONE',
      'app | b | 10.0.0.2 | n1 | wp | HBONE',
    ])
  })

  test('services with how many endpoints are healthy', () => {
    const list = Object.values(dump.services ?? {})
    assert.deepEqual(lines(serviceTable(list, dump)), [
      'NAMESPACE | SERVICE NAME | SERVICE VIP | WAYPOINT | ENDPOINTS',
      'app | web | 10.1.0.1 | None | 1/2',
      'app | wp | 10.1.0.2 | None | 0/0',
    ])
  })

  test('policies', () => {
    const list = [{ name: 'p', namespace: 'app', action: 'Deny', scope: 'Namespace' }]
    assert.deepEqual(lines(policyTable(list)).at(1), 'app | p | Deny | Namespace')
  })

  test('certificates: chain, root, and none yet', () => {
    const certificate = {
      serialNumber: '255',
      validFrom: '2026-01-01T00:00:00Z',
      expirationTime: '2026-01-02T00:00:00Z',
    }
    const list = [
      { identity: 'spiffe://a', state: 'Available', certChain: [certificate, certificate], rootCerts: [certificate] },
      { identity: 'spiffe://b', state: 'Unavailable: no answer', certChain: [] },
      { identity: 'spiffe://c', state: 'Available', certChain: [certificate, certificate] },
    ]
    const times = '2026-01-02T00:00:00Z | 2026-01-01T00:00:00Z'
    assert.deepEqual(lines(certificateTable(list, new Date('2026-01-01T12:00:00Z'))).slice(1), [
      `spiffe://a | Leaf | Available | true | ff | ${times}`,
      `spiffe://a | Intermediate | Available | true | ff | ${times}`,
      `spiffe://a | Root | Available | true | ff | ${times}`,
      'spiffe://b | NA | Unavailable | false | NA | NA | NA',
      `spiffe://c | Leaf | Available | true | ff | ${times}`,
      `spiffe://c | Root | Available | true | ff | ${times}`,
    ])
  })

  test('connections with names, or as they are', () => {
    const pods = [
      {
        info: { name: 'a', namespace: 'app' },
        connections: {
          inbound: [{ src: '10.0.0.2:5000', originalDst: '10.0.0.1:80', actualDst: '10.0.0.1:80', protocol: 'HBONE' }],
          outbound: [
            { src: '10.0.0.1:5001', originalDst: '10.1.0.1:80', actualDst: '10.0.0.2:15008', protocol: 'HBONE' },
          ],
        },
      },
    ]
    assert.deepEqual(lines(connectionTable(pods, dump, { raw: false })).slice(1), [
      'a.app | Inbound | a.app:80 | b.app:5000 | a.app:80 | HBONE',
      'a.app | Outbound | a.app:5001 | b.app:15008 | web.app.svc.cluster.local:80 | HBONE',
    ])
    assert.deepEqual(lines(connectionTable(pods, dump, { raw: true, direction: 'inbound' })).slice(1), [
      'a.app | Inbound | 10.0.0.1:80 | 10.0.0.2:5000 | 10.0.0.1:80 | HBONE',
    ])
  })
})
