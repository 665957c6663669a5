import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dumpConfig } from './dump.ts'
import { postQuantumGroup } from './key-exchange.ts'
import { loadConfig, processInputs } from './load.ts'
import { parseDurationMs } from './variables.ts'

const load = (env: Record<string, string>, files: Record<string, string> = {}) =>
  loadConfig({ env, machineCpus: 4, knowsKeyExchange: () => true, readFile: (path) => files[path] })

test('durations are numbers with units, or bare seconds', () => {
  assert.deepEqual(
    ['30s', '1h30m', '250ms', '5', '1d', '1.5s'].map(parseDurationMs),
    [30_000, 5_400_000, 250, 5000, 86_400_000, 1500],
  )
  assert.deepEqual(['', 's', '5x', '-1s', '1h30'].map(parseDurationMs), [
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ])
})

const wrong: readonly (readonly [env: Record<string, string>, message: RegExp])[] = [
  [{ ENABLE_PROXY: 'yes' }, /^invalid env var ENABLE_PROXY=yes \(/],
  [{ PROXY_MODE: 'dedicated', PROXY_WORKLOAD_INFO: 'a/b' }, /must match the format 'namespace\/name\/service-account'/],
  [{ PROXY_MODE: 'dedicated' }, /must match the format/],
  [{ XDS_ON_DEMAND: 'true' }, /^DNS proxy does not currently support on-demand mode$/],
  [{ FAKE_CA: 'true' }, /FAKE_CA=true is refused/],
  [{ LOCAL_XDS: '{}', LOCAL_XDS_PATH: 'f' }, /^only one of /],
  [{ LOCAL_XDS_PATH: 'absent' }, /there is no file absent/],
  [{ PROXY_CONFIG: '{' }, /^failed parsing proxy config env: /],
  [{ PROXY_CONFIG: '{statsPort: x}' }, /^failed parsing proxy config env: statsPort: /],
  [{ XDS_ADDRESS: 'http://istiod:15010' }, /^invalid env var XDS_ADDRESS=/],
  [{ CA_ADDRESS: 'https://' }, /^invalid env var CA_ADDRESS=/],
  [{ XDS_HEADER_A: 'line\nbreak' }, /^invalid env var XDS_HEADER_A: /],
  [{ 'CA_HEADER_A B': 'x' }, /is not a header name/],
  [{ ZTUNNEL_RESOURCE_CPU_LIMIT: '0' }, /^invalid env var ZTUNNEL_RESOURCE_CPU_LIMIT=0/],
  [{ KEEPALIVE_TIME: 'soon' }, /^invalid env var KEEPALIVE_TIME=soon/],
  [{ COMPLIANCE_POLICY: 'fips' }, /^invalid env var COMPLIANCE_POLICY=fips/],
  [{ RUST_LOG: 'loud' }, /loud/],
  [{ LOG_FORMAT: 'xml' }, /^invalid env var LOG_FORMAT=xml/],
]
for (const [env, message] of wrong) {
  test(`refused: ${JSON.stringify(env)}`, () => {
    assert.throws(() => load(env), { message })
  })
}

test('the mesh file that cannot be read stops the start and is named', () => {
  assert.throws(
    () => load({}, { './etc/istio/config/mesh': 'defaultConfig: 5' }),
    /^Error: failed parsing mesh config file \.\/etc\/istio\/config\/mesh: /,
  )
  assert.deepEqual(load({}, { './etc/istio/config/mesh': '' }).proxyMetadata, {})
})

test('metadata is merged key by key', () => {
  const config = load(
    { PROXY_CONFIG: '{proxyAdminPort: 16000, proxyMetadata: {ISTIO_META_A: y}}', ISTIO_META_C: 'z' },
    { './etc/istio/config/mesh': 'defaultConfig: {statsPort: 16020, proxyMetadata: {ISTIO_META_A: x, B: b}}' },
  )
  assert.deepEqual([config.statsPort, config.adminPort], [16020, 16000])
  assert.deepEqual(config.proxyMetadata, { A: 'y', B: 'b', C: 'z' })
})

test('roots and tokens: a file, the system, or the text itself', () => {
  const pem = '-----BEGIN CERTIFICATE-----\n'
  assert.deepEqual(load({ XDS_ROOT_CA: pem }).xds?.roots, { kind: 'pem', pem })
  assert.deepEqual(load({ XDS_ROOT_CA: 'SYSTEM' }).xds?.roots, { kind: 'system' })
  assert.deepEqual(load({ XDS_ROOT_CA: '/later.pem' }).xds?.roots, { kind: 'file', path: '/later.pem' })
  assert.equal(load({}).authToken, undefined)
  assert.deepEqual(load({ AUTH_TOKEN: '/t' }, { '/t': 'x' }).authToken, { kind: 'file', path: '/t' })
  assert.deepEqual(load({ AUTH_TOKEN: 'abc' }).authToken, { kind: 'literal', token: 'abc' })
  assert.equal(load({ XDS_ADDRESS: '' }).xds, undefined)
})

test('the dump of the configuration holds no secret', () => {
  const text = JSON.stringify(
    dumpConfig(load({ AUTH_TOKEN: 'sesame', XDS_HEADER_KEY: 'sesame', CA_HEADER_KEY: 'sesame' })),
  )
  assert.ok(!text.includes('sesame'), text)
  assert.ok(text.includes('"network":""'))
})

test('metadata that is no JSON is skipped with a warning', () => {
  const config = load({ ISTIO_METAJSON_A: '{"x":1}', ISTIO_METAJSON_B: '{' })
  assert.deepEqual(config.jsonMetadata, { A: { x: 1 } })
  assert.equal(config.warnings.length, 1)
})

test('a window of connections that few tunnels can fill is warned of', () => {
  const warnings = (env: Readonly<Record<string, string>>) => load(env).warnings
  assert.deepEqual(warnings({}), [])
  assert.deepEqual(warnings({ HTTP2_STREAM_WINDOW_SIZE: '100000', HTTP2_CONNECTION_WINDOW_SIZE: '400000' }), [])
  const [warning, ...more] = warnings({ HTTP2_STREAM_WINDOW_SIZE: '100000', HTTP2_CONNECTION_WINDOW_SIZE: '399999' })
  assert.match(warning ?? '', /^HTTP2_CONNECTION_WINDOW_SIZE of 399999 is less than four times/)
  assert.deepEqual(more, [])
})

test('a compliance policy is refused where the TLS library lacks its group, which is named', () => {
  const asked: string[] = []
  const inputs = (knows: boolean, policy?: string) => ({
    env: policy === undefined ? {} : { COMPLIANCE_POLICY: policy },
    machineCpus: 1,
    readFile: () => undefined,
    knowsKeyExchange(group: string) {
      asked.push(group)
      return knows
    },
  })
  assert.throws(() => loadConfig(inputs(false, 'pqc')), {
    code: 'INVALID_CONFIG',
    message: /^COMPLIANCE_POLICY=pqc: X25519MLKEM768 is not known to openssl \d/,
  })
  assert.equal(loadConfig(inputs(true, 'pqc')).compliancePolicy, 'pqc')
  assert.equal(loadConfig(inputs(false)).compliancePolicy, undefined)
  assert.deepEqual(asked, [postQuantumGroup, postQuantumGroup], 'only where the policy is set')
})

test('the TLS library of this process says which groups it knows', () => {
  const { knowsKeyExchange } = processInputs({})
  assert.equal(knowsKeyExchange(postQuantumGroup), true)
  assert.equal(knowsKeyExchange('X25519MLKEM769'), false)
})
