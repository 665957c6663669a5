import assert from 'node:assert/strict'
import test from 'node:test'
import * as packet from 'dns-packet'
import type { EndpointSlice, Service } from '../node/types.ts'
import { decodeQuery, encodeResolution } from './message.ts'
import { type Answer, type ClusterView, resolveName } from './records.ts'

const service = (name: string, spec: Service['spec']): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'shop' },
  ...(spec && { spec }),
})
const services = [
  service('web', { clusterIP: '10.96.0.7', ports: [{ name: 'http', port: 80 }] }),
  service('db', { clusterIP: 'None', ports: [{ name: 'sql', port: 5432 }] }),
  service('ext', { type: 'ExternalName', externalName: 'example.org' }),
]
const slice: EndpointSlice = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'db-1', namespace: 'shop' },
  ports: [{ name: 'sql', port: 5432 }],
  endpoints: [
    { addresses: ['10.244.0.5'], hostname: 'db-0', conditions: { ready: true } },
    { addresses: ['10.244.0.6'], conditions: { ready: true } },
    { addresses: ['10.244.0.7'], conditions: { ready: false } },
  ],
}
const view: ClusterView = {
  domain: 'cluster.local',
  service: (namespace, name) => (namespace === 'shop' ? services.find((s) => s.metadata.name === name) : undefined),
  hasNamespace: (name) => name === 'shop',
  slices: (_, name) => (name === 'db' ? [slice] : []),
  namesOf: (ip) => (ip === '10.96.0.7' ? ['web.shop.svc.cluster.local'] : []),
}

function textOf(answer: Answer): string {
  switch (answer.kind) {
    case 'A':
    case 'AAAA':
      return answer.ip
    case 'SRV':
      return `${answer.target}:${answer.port}`
    case 'TXT':
      return answer.text
    case 'CNAME':
    case 'PTR':
      return answer.target
  }
}

const table: readonly [string, string, string[] | 'nxdomain' | 'forward'][] = [
  ['web.shop.svc.cluster.local', 'A', ['10.96.0.7']],
  ['WEB.shop.svc.cluster.local.', 'A', ['10.96.0.7']],
  ['web.shop.svc.cluster.local', 'AAAA', []],
  ['db.shop.svc.cluster.local', 'A', ['10.244.0.5', '10.244.0.6']],
  ['db-0.db.shop.svc.cluster.local', 'A', ['10.244.0.5']],
  ['10-244-0-6.db.shop.svc.cluster.local', 'A', ['10.244.0.6']],
  ['db-9.db.shop.svc.cluster.local', 'A', 'nxdomain'],
  ['ext.shop.svc.cluster.local', 'A', ['example.org']],
  ['_http._tcp.web.shop.svc.cluster.local', 'SRV', ['web.shop.svc.cluster.local:80']],
  [
    '_sql._tcp.db.shop.svc.cluster.local',
    'SRV',
    ['db-0.db.shop.svc.cluster.local:5432', '10-244-0-6.db.shop.svc.cluster.local:5432'],
  ],
  ['_sql._udp.db.shop.svc.cluster.local', 'SRV', 'nxdomain'],
  ['1-2-3-4.shop.pod.cluster.local', 'A', ['1.2.3.4']],
  ['no.shop.svc.cluster.local', 'A', 'nxdomain'],
  ['web.nowhere.svc.cluster.local', 'A', 'nxdomain'],
  ['shop.svc.cluster.local', 'A', []],
  ['7.0.96.10.in-addr.arpa', 'PTR', ['web.shop.svc.cluster.local']],
  ['8.8.8.8.in-addr.arpa', 'PTR', 'forward'],
  ['example.org', 'A', 'forward'],
  ['notcluster.local', 'A', 'forward'],
]
for (const [name, type, expected] of table) {
  test(`${type} of ${name}: ${JSON.stringify(expected)}`, () => {
    const resolution = resolveName(name, type, view)
    if (resolution.kind !== 'answers') {
      assert.equal(resolution.kind, expected)
      return
    }
    assert.deepEqual(resolution.answers.map(textOf), expected)
  })
}

test('an answer goes over the wire with its question and id', () => {
  const bytes = packet.encode({ type: 'query', id: 7, questions: [{ type: 'A', name: 'web.shop.svc.cluster.local' }] })
  const query = decodeQuery(bytes)
  assert.ok(query !== undefined)
  const resolution = resolveName(query.name, query.type, view)
  assert.ok(resolution.kind !== 'forward')
  const answer = packet.decode(encodeResolution(query, resolution, view.domain))
  assert.equal(answer.id, 7)
  assert.equal(answer.questions?.[0]?.name, 'web.shop.svc.cluster.local')
  assert.equal((answer.answers?.[0] as { data?: string } | undefined)?.data, '10.96.0.7')
})

test('bytes that are no query are ignored', () => {
  assert.equal(decodeQuery(Buffer.from('nonsense')), undefined)
})
