import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeCa, makeLeaf } from '../../test/support/ca.ts'
import { logLines } from '../../test/support/log-lines.ts'
import { followForeignTrust, foreignSources } from './foreign-trust.ts'
import { parseBundleEndpoints } from './setting-reader.ts'

const meshOf = (caCertificates: readonly object[], trustDomainAliases: readonly string[] = []) => ({
  trustDomain: 'cluster.local',
  trustDomainAliases,
  fields: { caCertificates },
})

test('roots count for the domains that they are named for, and never for this mesh and its aliases', () => {
  const config = meshOf(
    [
      { pem: 'everybody' },
      { pem: 'own', trustDomains: ['cluster.local', 'old'] },
      { pem: 'a', trustDomains: ['a.example', 'cluster.local'] },
      { pem: 'b', trustDomains: ['b@example', ''] },
      { spiffeBundleUrl: 'https://a', trustDomains: ['a.example'] },
    ],
    ['old'],
  )
  const endpoints = parseBundleEndpoints('a.example|https://a||c.example|https://c||old|https://old')
  assert.deepEqual(
    [...foreignSources(config, endpoints)],
    [
      ['a.example', { pems: ['a'], urls: ['https://a'] }],
      ['b.example', { pems: ['b'], urls: [] }],
      ['c.example', { pems: [], urls: ['https://c'] }],
    ],
  )
})

test('bundle endpoints that are none are named', () => {
  assert.deepEqual(parseBundleEndpoints(''), [])
  for (const text of ['a', 'a|http://a', '|https://a', 'a|https://a|', 'a|https://a||']) {
    assert.throws(() => parseBundleEndpoints(text), { code: 'INVALID_SETTING', message: /SPIFFE_BUNDLE_ENDPOINTS/ })
  }
})

test('roots follow mesh config; one that is no authority leaves what was said before', async () => {
  const [a, b] = [await makeCa({ name: 'a' }), await makeCa({ name: 'b' })]
  const log = logLines()
  let tell = (): void => {}
  const mesh = {
    current: meshOf([{ pem: a.pem, trustDomains: ['a.example'] }]),
    subscribe(listener: () => void) {
      tell = listener
      return () => {}
    },
  }
  using trust = followForeignTrust({ mesh, endpoints: [], log: log.logging.scope('ca') })
  const namesOf = (domain: string) => trust.rootsOf(domain).map(({ subject }) => subject)
  assert.deepEqual(namesOf('a.example'), ['O=a'])
  assert.deepEqual(namesOf('b.example'), [])
  assert.equal(trust.rootsOf('a.example'), trust.rootsOf('a.example'))
  mesh.current = meshOf([{ pem: b.pem, trustDomains: ['a.example', 'b.example'] }])
  tell()
  assert.deepEqual([namesOf('a.example'), namesOf('b.example')], [['O=b'], ['O=b']])
  mesh.current = meshOf([{ pem: (await makeLeaf(a, ['spiffe://x/ns/a/sa/b'])).pem, trustDomains: ['a.example'] }])
  tell()
  await log.until(/roots of another trust domain are refused; the last ones stay/)
  assert.deepEqual([namesOf('a.example'), namesOf('b.example')], [['O=b'], []])
  mesh.current = meshOf([])
  tell()
  assert.deepEqual(namesOf('a.example'), [])
})
