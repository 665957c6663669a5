import assert from 'node:assert/strict'
import test from 'node:test'
import { formatResolvConf, parseResolvConf, podHosts, podResolver } from './name-files.ts'
import type { Pod, PodSpec } from './types.ts'

const pod = (spec: Partial<PodSpec>): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-0', namespace: 'shop' },
  spec: { containers: [], ...spec },
})
const cluster = { dnsIP: '10.96.0.10', domain: 'cluster.local' }
const host = { nameservers: ['192.0.2.53'], search: ['example.org'], options: ['rotate'] }

test('a pod asks the cluster and searches its namespace first', () => {
  const config = podResolver(pod({}), cluster, host)
  assert.equal(
    formatResolvConf(config),
    'search shop.svc.cluster.local svc.cluster.local cluster.local example.org\nnameserver 10.96.0.10\noptions ndots:5\n',
  )
})

const policies: readonly [Partial<PodSpec>, string][] = [
  [{ hostNetwork: true }, '192.0.2.53'],
  [{ hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' }, '10.96.0.10'],
  [{ dnsPolicy: 'Default' }, '192.0.2.53'],
  [{ dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.1'] } }, '192.0.2.1'],
]
for (const [spec, server] of policies) {
  test(`${JSON.stringify(spec)} asks ${server}`, () => {
    assert.deepEqual(podResolver(pod(spec), cluster, host).nameservers, [server])
  })
}

test('options of the pod win over those of the policy', () => {
  const dnsConfig = { options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }], searches: ['x.org'] }
  const config = podResolver(pod({ dnsConfig }), cluster, host)
  assert.deepEqual(config.options, ['ndots:2', 'edns0'])
  assert.equal(config.search.at(-1), 'x.org')
})

test('resolv.conf is read with its comments and its last search line', () => {
  const text = '# a\nnameserver 1.1.1.1 # x\nsearch a b\nnameserver 2.2.2.2\nsearch c\noptions ndots:1\n'
  assert.deepEqual(parseResolvConf(text), { nameservers: ['1.1.1.1', '2.2.2.2'], search: ['c'], options: ['ndots:1'] })
})

test('hosts names the pod, in full with a subdomain', () => {
  const spec = { subdomain: 'web', hostAliases: [{ ip: '192.0.2.9', hostnames: ['a', 'b'] }] }
  const text = podHosts(pod(spec), ['10.244.0.2'], 'cluster.local')
  assert.match(text, /^10\.244\.0\.2\tweb-0\.web\.shop\.svc\.cluster\.local\tweb-0$/m)
  assert.match(text, /^192\.0\.2\.9\ta\tb$/m)
})
