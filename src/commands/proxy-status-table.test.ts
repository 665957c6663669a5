import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { age, type ProxyOfPod, proxyStatusTable, verboseProxyStatusTable } from './proxy-status-table.ts'

const address = 'type.googleapis.com/istio.workload.Address'
const authorization = 'type.googleapis.com/istio.security.Authorization'
const proxy = (name: string, resources: ProxyOfPod['resources'] = {}): ProxyOfPod => ({
  cluster_id: 'Kubernetes',
  proxy: name,
  proxy_type: 'ztunnel',
  istio_version: '1.2.3',
  istiod: 'istiod-1',
  resources,
})
const lines = (table: string): string[] =>
  table
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/ {2,}/g, ' | '))

describe('the table of proxies', () => {
  test('has a head although there are none', () => {
    assert.deepEqual(lines(proxyStatusTable([])), ['NAME | CLUSTER | ISTIOD | VERSION | SUBSCRIBED TYPES'])
  })

  test('names what each watches', () => {
    const list = [proxy('b.ns'), proxy('a.ns', { [authorization]: { sent: '1' }, [address]: { sent: '1' } })]
    assert.deepEqual(lines(proxyStatusTable(list)).slice(1), [
      'a.ns | Kubernetes | istiod-1 | 1.2.3 | 2 (WADS,WDS)',
      'b.ns | Kubernetes | istiod-1 | 1.2.3 | 0',
    ])
  })

  test('tells the state of each type', () => {
    const now = new Date('2026-01-01T00:03:12Z')
    const sentTime = '2026-01-01T00:00:00Z'
    const list = [
      proxy('a.ns', {
        [address]: { sent: '1', acked: '1', sentTime },
        [authorization]: { sent: '2', acked: '1', sentTime },
      }),
      proxy('b.ns', { [address]: { sent: '1', acked: '', lastError: 'no', sentTime }, [authorization]: { sent: '' } }),
      proxy('c.ns'),
    ]
    assert.deepEqual(lines(verboseProxyStatusTable(list, now)), [
      'NAME | CLUSTER | WADS | WDS | ISTIOD | VERSION',
      'a.ns | Kubernetes | STALE (3m12s) | SYNCED (3m12s) | istiod-1 | 1.2.3',
      'b.ns | Kubernetes | NOT SENT | ERROR (3m12s) | istiod-1 | 1.2.3',
      'c.ns | Kubernetes | IGNORED | IGNORED | istiod-1 | 1.2.3',
    ])
  })

  test('shows ages as people say them', () => {
    assert.deepEqual([0, 59_000, 60_000, 3_700_000, 400_000_000].map(age), ['0s', '59s', '1m', '1h1m', '4d'])
  })
})
