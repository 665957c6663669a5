import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseGoDuration } from '../util/index.ts'
import { splitAddress } from './http-server.ts'
import { readSettings, SettingError } from './settings.ts'

describe('settings', () => {
  test('have defaults that serve securely', () => {
    const settings = readSettings({}, {}, 2)
    assert.equal(settings.namespace, 'istio-system')
    assert.equal(settings.secureGrpcAddress, ':15012')
    assert.deepEqual(settings.authentication, { tokenAudiences: ['istio-ca'], tokenRules: [], trustedGatewayCidrs: [] })
    assert.equal(settings.trustedNodeAccounts, '')
    assert.equal(settings.checkNodeIdentity, true)
    assert.equal(settings.debugAuth, true)
    assert.equal(settings.plainGrpcAddress, '')
    assert.equal(settings.introspectionAddress, 'localhost:9876')
    assert.deepEqual(settings.authenticates, { onTls: true, onPlaintext: false })
    assert.equal(settings.restrictsExport, true)
    assert.equal(settings.streamsPerSecond, 25)
    assert.equal(settings.warmsUp, false)
    assert.equal(settings.statusWriters, 10)
  })

  test('come from flags before the environment', () => {
    const env = { POD_NAMESPACE: 'from-env', CLUSTER_ID: 'c1', PILOT_ENABLE_IP_AUTOALLOCATE: 'false' }
    const settings = readSettings({ namespace: 'from-flag', shutdownDuration: '1m30s' }, env, 2)
    assert.equal(settings.namespace, 'from-flag')
    assert.equal(settings.ambient.clusterId, 'c1')
    assert.equal(settings.ambient.allocateAddresses, false)
    assert.equal(settings.shutdownMs, 90_000)
  })

  test('never give more to those that ask for no lifetime than to others', () => {
    const { defaultWorkloadTtlSeconds, maxWorkloadTtlSeconds } = readSettings({}, { MAX_WORKLOAD_CERT_TTL: '1h' }, 1)
    assert.deepEqual([defaultWorkloadTtlSeconds, maxWorkloadTtlSeconds], [3600, 3600])
    assert.equal(readSettings({}, {}, 1).defaultWorkloadTtlSeconds, 86_400)
  })

  test('take another issuer of tokens outside a cluster alone', () => {
    const rules = (env: Record<string, string>) => readSettings({}, env, 1).authentication.tokenRules
    const env = { TOKEN_ISSUER: 'https://issuer', AUDIENCE: 'mesh' }
    const rule = { issuer: 'https://issuer', audiences: ['mesh'] }
    assert.deepEqual(rules(env), [rule])
    assert.deepEqual(rules({ ...env, KUBERNETES_SERVICE_HOST: '10.0.0.1' }), [])
    const first = { issuer: 'https://first', audiences: ['a'] }
    assert.deepEqual(rules({ ...env, JWT_RULE: JSON.stringify(first) }), [first, rule])
  })

  for (const [flags, env, message] of [
    [{}, { CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE: '1024' }, /CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE: expected 2048/],
    [{ shutdownDuration: 'soon' }, {}, /--shutdownDuration: expected a duration/],
    [{ keepaliveMaxServerConnectionAge: '-1s' }, {}, /--keepaliveMaxServerConnectionAge/],
    [{ grpcAddr: '15010' }, {}, /--grpcAddr: expected host:port or :port/],
    [{ clusterAliases: 'a=c,b=c' }, {}, /More than one cluster alias for cluster id: c/],
    [{ tlsCertFile: 'x' }, {}, /expected all three or none/],
    [{ tlsMinVersion: '1.1' }, {}, /--tls-min-version: expected 1.2 or 1.3/],
    [{ tlsCipherSuites: 'TLS_NULL' }, {}, /--tls-cipher-suites: expected some of/],
    [{}, { PILOT_INSECURE_MULTICLUSTER_KUBECONFIG_OPTIONS: 'all' }, /expected some of exec/],
    [{}, { PILOT_REMOTE_CLUSTER_TIMEOUT: '-1s' }, /PILOT_REMOTE_CLUSTER_TIMEOUT: expected a duration/],
    [{}, { ENABLE_LEADER_ELECTION: 'maybe' }, /ENABLE_LEADER_ELECTION: expected true or false/],
    [{ profile: 'maybe' }, {}, /--profile: expected true or false/],
    [{}, { TOKEN_ISSUER: 'https://issuer' }, /AUDIENCE: expected/],
    [{}, { JWT_RULE: 'issuer' }, /JWT_RULE: invalid JWT rule: not JSON/],
    [{}, { JWT_RULE: '{"issuer": "i", "audiences": "a"}' }, /JWT_RULE: invalid JWT rule: audiences: expected a list/],
    [{}, { TRUSTED_GATEWAY_CIDR: '10.0.0.0/8,gateway' }, /TRUSTED_GATEWAY_CIDR: trusted gateway 'gateway': expected/],
    [{}, { TOKEN_AUDIENCES: ' , ' }, /TOKEN_AUDIENCES: expected at least one audience/],
    [{}, { PILOT_IP_AUTOALLOCATE_IPV4_PREFIX: '240.240.0.0' }, /IPV4_PREFIX: expected an IPv4 prefix such as 240/],
    [{}, { PILOT_IP_AUTOALLOCATE_IPV4_PREFIX: '2001:2::/48' }, /IPV4_PREFIX: expected an IPv4 prefix/],
    [{}, { PILOT_IP_AUTOALLOCATE_IPV6_PREFIX: '2001:2::/129' }, /IPV6_PREFIX: expected an IPv6 prefix/],
    [{}, { PILOT_IP_AUTOALLOCATE_IPV6_PREFIX: '2001:2::/4/8' }, /IPV6_PREFIX: expected an IPv6 prefix/],
    [{}, { PILOT_CERT_PROVIDER: 'kubernetes' }, /PILOT_CERT_PROVIDER: expected/],
    [{}, { PILOT_STATUS_MAX_WORKERS: '0' }, /PILOT_STATUS_MAX_WORKERS: expected at least 1/],
    [{}, { ISTIO_GPRC_MAXRECVMSGSIZE: 'big' }, /ISTIO_GPRC_MAXRECVMSGSIZE: expected a whole number/],
  ] as const) {
    test(`say what is wrong: ${message.source}`, () => {
      assert.throws(
        () => readSettings(flags, env, 2),
        (error) => error instanceof SettingError && message.test(error.message),
      )
    })
  }
})

test('durations are read as they are written', () => {
  const cases = {
    '100ms': 100,
    '1h30m': 5_400_000,
    '1.5s': 1_500,
    '0': 0,
    '-10s': -10_000,
    '10': undefined,
    '': undefined,
    '5 s': undefined,
  }
  for (const [text, ms] of Object.entries(cases)) assert.equal(parseGoDuration(text), ms, text)
})

test('addresses are split into host and port', () => {
  assert.deepEqual(splitAddress(':8080'), { host: '', port: 8080 })
  assert.deepEqual(splitAddress('[::1]:80'), { host: '::1', port: 80 })
  assert.throws(() => splitAddress('8080'), TypeError)
  assert.throws(() => splitAddress('a:b'), TypeError)
})
