import assert from 'node:assert/strict'
import { test } from 'node:test'
import { workload } from '../../../proto/index.ts'
import type { ServiceInfo } from '../model.ts'
import { appProtocolOfServicePort, appProtocolOfWord } from './app-protocol.ts'
import { loadBalancingOf } from './load-balancing.ts'
import { published } from './published.ts'
import { InvalidSelectorError, scopeOf, validVisibility, visibilityOf } from './visibility.ts'

test('the protocol of a port is told by appProtocol, then by the first word of its name', () => {
  const cases: readonly [port: Parameters<typeof appProtocolOfServicePort>[0], protocol: string][] = [
    [{ port: 80, name: 'http' }, 'HTTP11'],
    [{ port: 80, name: 'HTTP2-api' }, 'HTTP2'],
    [{ port: 80, name: 'grpc-web-x' }, 'UNKNOWN'],
    [{ port: 80, name: 'https-admin' }, 'TLS'],
    [{ port: 80, name: 'http', appProtocol: 'kubernetes.io/h2c' }, 'HTTP2'],
    [{ port: 80, name: 'http', appProtocol: 'kubernetes.io/wss' }, 'TLS'],
    [{ port: 80, name: 'http', appProtocol: 'example.com/own' }, 'UNKNOWN'],
    [{ port: 80, name: 'http', protocol: 'UDP' }, 'UNKNOWN'],
    [{ port: 3306, name: 'db' }, 'TCP'],
    [{ port: 3306, name: 'mysql' }, 'UNKNOWN'],
    [{ port: 80, name: 'constructor' }, 'UNKNOWN'],
    [{ port: 80 }, 'UNKNOWN'],
  ]
  for (const [port, protocol] of cases) {
    assert.equal(workload.AppProtocol[appProtocolOfServicePort(port)], protocol, JSON.stringify(port))
  }
  assert.equal(workload.AppProtocol[appProtocolOfWord('Http')], 'HTTP11')
  assert.equal(workload.AppProtocol[appProtocolOfWord('http-x')], 'UNKNOWN')
})

test('traffic distribution: spec, then the object, then its namespace; an unknown word of the object ends the search', () => {
  const of = (sources: Partial<Parameters<typeof loadBalancingOf>[0]>) =>
    loadBalancingOf({ namespaceAnnotation: () => 'PreferClose', ...sources })?.routingPreference?.length
  assert.equal(of({ internalTrafficPolicy: 'Local' }), 1)
  assert.equal(of({ trafficDistribution: 'PreferSameNode' }), 5)
  assert.equal(of({ annotation: 'prefersamenode' }), 5)
  assert.equal(of({ annotation: 'sideways' }), undefined)
  assert.equal(of({}), 3)
})

test('publishing unready addresses changes one service only', () => {
  const sources = { trafficDistribution: 'PreferClose', namespaceAnnotation: () => undefined }
  const { LoadBalancing_HealthPolicy: HealthPolicy } = workload
  assert.equal(loadBalancingOf({ ...sources, publishNotReadyAddresses: true })?.healthPolicy, HealthPolicy.ALLOW_ALL)
  assert.equal(loadBalancingOf(sources)?.healthPolicy, undefined)
})

const info = (kind: 'Service' | 'ServiceEntry', namespace: string, name: string, created = '', visibility = 'PUBLIC') =>
  ({ source: { kind, namespace, name, created }, namespace, hostname: 'x.com', visibility }) as ServiceInfo
const summary = (infos: readonly ServiceInfo[]) =>
  published(infos)
    .map(([key, { info: winner, canonical }]) => `${key} ${winner.source.name}${canonical ? ' canonical' : ''}`)
    .sort()

test('in a namespace a Service beats every ServiceEntry, among these the oldest wins, then the first by name', () => {
  assert.deepEqual(summary([info('ServiceEntry', 'a', 'old', '2023'), info('Service', 'a', 'svc', '2024')]), [
    'a/x.com svc canonical',
  ])
  assert.deepEqual(summary([info('ServiceEntry', 'a', 'new', '2024'), info('ServiceEntry', 'a', 'old', '2023')]), [
    'a/x.com old canonical',
  ])
  assert.deepEqual(summary([info('ServiceEntry', 'a', 'y'), info('ServiceEntry', 'a', 'x')]), ['a/x.com x canonical'])
})

test('of the winners of all namespaces the oldest public one is canonical', () => {
  assert.deepEqual(
    summary([
      info('ServiceEntry', 'a', 'hidden', '2022', 'NAMESPACE'),
      info('ServiceEntry', 'b', 'old', '2023'),
      info('ServiceEntry', 'c', 'new', '2024'),
    ]),
    ['a/x.com hidden', 'b/x.com old canonical', 'c/x.com new'],
  )
})

test('the first visibility policy whose rules all hold decides', () => {
  const config = {
    policies: [
      { visibility: 'NAMESPACE', matchingRules: [{ namespaceSelector: { matchLabels: { team: 'a' } } }] },
      { visibility: 'NONE', matchingRules: [{}] },
      { visibility: 'VISIBILITY_UNSPECIFIED', matchingRules: [{ namespaceSelector: { matchLabels: { team: 'b' } } }] },
    ],
    defaultVisibility: 'NONE',
  }
  assert.equal(visibilityOf(config, { team: 'a' }), 'NAMESPACE')
  assert.equal(visibilityOf(config, { team: 'b' }), 'PUBLIC')
  assert.equal(visibilityOf(config, {}), 'NONE')
  assert.equal(visibilityOf(undefined, {}), 'PUBLIC')
})

test('a selector that cannot be evaluated is named with its place', () => {
  const namespaceSelector = { matchExpressions: [{ key: 'team', operator: 'Like' }] }
  assert.throws(
    () => validVisibility({ policies: [{ matchingRules: [{ namespaceSelector }] }] }),
    (error) => {
      assert.ok(error instanceof InvalidSelectorError)
      assert.match(error.message, /policies\[0\].*"Like".*team/)
      return true
    },
  )
})

test('a service is GLOBAL where one entry selects both its namespace and itself', () => {
  const global = {
    scope: 'GLOBAL',
    servicesSelector: { matchLabels: { g: '1' } },
    namespaceSelector: { matchLabels: { n: '1' } },
  }
  assert.equal(scopeOf([global], { n: '1' }, { g: '1' }), 'GLOBAL')
  assert.equal(scopeOf([global], {}, { g: '1' }), 'LOCAL')
  assert.equal(scopeOf([{ scope: 'GLOBAL' }], {}, {}), 'GLOBAL')
  assert.equal(scopeOf([{ scope: 'LOCAL' }], {}, {}), 'LOCAL')
  assert.equal(scopeOf(undefined, {}, {}), 'LOCAL')
})
