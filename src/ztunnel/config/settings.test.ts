// What each variable of the environment sets, and what holds without it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dataPlaneOptions, ownDataPlaneOptions } from '../workers/data-plane-options.ts'
import { loadConfig } from './load.ts'
import type { ZtunnelConfig } from './types.ts'

const load = (env: Record<string, string>) =>
  loadConfig({ env, machineCpus: 4, knowsKeyExchange: () => true, readFile: () => undefined })
const plane = (config: ZtunnelConfig) => dataPlaneOptions(config)

type Setting = readonly [
  env: Readonly<Record<string, string>>,
  read: (config: ZtunnelConfig) => unknown,
  otherwise: unknown,
  then: unknown,
]

const settings: readonly Setting[] = [
  [{ PROXY_MODE: 'dedicated', PROXY_WORKLOAD_INFO: 'n/p/a' }, (c) => c.mode, 'shared', 'dedicated'],
  [{ ENABLE_PROXY: 'false' }, (c) => plane(c).proxy, true, false],
  [{ NETWORK: 'n' }, (c) => plane(c).network, '', 'n'],
  [{ NODE_NAME: 'n' }, (c) => c.node, undefined, 'n'],
  [{ CLUSTER_ID: 'a' }, (c) => c.clusterId, 'Kubernetes', 'a'],
  [{ CLUSTER_ID: 'a', ISTIO_META_CLUSTER_ID: 'b' }, (c) => c.clusterId, 'Kubernetes', 'b'],
  [{ CLUSTER_DOMAIN: 'd' }, (c) => c.clusterDomain, 'cluster.local', 'd'],
  [
    { TRUST_DOMAIN: 'd' },
    (c) => [ownDataPlaneOptions(c).trustDomain, plane(c).trustDomain],
    [undefined, undefined],
    ['d', undefined],
  ],
  [{ PACKET_MARK: '7' }, (c) => ownDataPlaneOptions(c).mark, undefined, undefined],
  [
    { POD_NAME: 'p', POD_NAMESPACE: 'n', SERVICE_ACCOUNT: 'a' },
    (c) => c.self,
    undefined,
    { name: 'p', namespace: 'n', serviceAccount: 'a' },
  ],
  [
    { POD_NAME: 'p', POD_NAMESPACE: 'n' },
    (c) => [c.podName, c.podNamespace, c.self],
    ['', '', undefined],
    ['p', 'n', undefined],
  ],
  [{ INSTANCE_IP: '10.0.0.1' }, (c) => c.instanceIp, '1.1.1.1', '10.0.0.1'],
  [{ XDS_ADDRESS: 'istiod:15012' }, (c) => c.xds?.address, 'https://localhost:15012', 'https://istiod:15012'],
  [{ CA_ADDRESS: 'istiod:15012' }, (c) => c.ca?.address, 'https://localhost:15012', 'https://istiod:15012'],
  [
    { PROXY_CONFIG: '{discoveryAddress: mesh.example:15012}' },
    (c) => [c.xds?.address, c.ca?.address],
    ['https://localhost:15012', 'https://localhost:15012'],
    ['https://mesh.example:15012', 'https://mesh.example:15012'],
  ],
  [{ CA_ADDRESS: '' }, (c) => c.ca === undefined, false, true],
  [
    { KUBERNETES_SERVICE_HOST: '1' },
    (c) => c.ca?.address,
    'https://localhost:15012',
    'https://istiod.istio-system.svc:15012',
  ],
  [
    { XDS_ROOT_CA: '/r' },
    (c) => c.xds?.roots,
    { kind: 'file', path: './var/run/secrets/istio/root-cert.pem' },
    { kind: 'file', path: '/r' },
  ],
  [
    { CA_ROOT_CA: 'SYSTEM' },
    (c) => c.ca?.roots,
    { kind: 'file', path: './var/run/secrets/istio/root-cert.pem' },
    { kind: 'system' },
  ],
  [{ ALT_XDS_HOSTNAME: 'h' }, (c) => [c.xds?.altHostname, c.ca?.altHostname], [undefined, undefined], ['h', undefined]],
  [{ ALT_CA_HOSTNAME: 'h' }, (c) => [c.xds?.altHostname, c.ca?.altHostname], [undefined, undefined], [undefined, 'h']],
  [{ XDS_HEADER_A: '1' }, (c) => [c.xds?.headers, c.ca?.headers], [{}, {}], [{ A: '1' }, {}]],
  [{ CA_HEADER_A: '1' }, (c) => [c.xds?.headers, c.ca?.headers], [{}, {}], [{}, { A: '1' }]],
  [{ XDS_ON_DEMAND: 'true', ISTIO_META_DNS_CAPTURE: 'false' }, (c) => c.xdsOnDemand, false, true],
  [{ ISTIO_META_DNS_CAPTURE: 'FALSE' }, (c) => c.dnsProxyEnabled, true, false],
  [{ ISTIO_META_DNS_CAPTURE: 'TRUE' }, (c) => c.dnsProxyEnabled, true, true],
  [
    { ISTIO_META_DNS_PROXY_ADDR: 'localhost:5300' },
    (c) => [plane(c).dnsAddress, plane(c).ports.dns],
    [undefined, 15053],
    [undefined, 5300],
  ],
  [
    { ISTIO_META_DNS_PROXY_ADDR: '10.0.0.1:53' },
    (c) => [plane(c).dnsAddress, plane(c).ports.dns],
    [undefined, 15053],
    ['10.0.0.1', 53],
  ],
  [{ AUTH_TOKEN: 't' }, (c) => c.authToken, undefined, { kind: 'literal', token: 't' }],
  [{ SECRET_TTL: '1h' }, (c) => c.secretTtlMs, 86_400_000, 3_600_000],
  [{ LOCAL_XDS: 'workloads: []' }, (c) => c.localContent, undefined, { workloads: [], services: [], policies: [] }],
  [{ INPOD_UDS: '/s' }, (c) => c.inpodSocket, '/var/run/ztunnel/ztunnel.sock', '/s'],
  [{ INPOD_PORT_REUSE: 'false' }, (c) => plane(c).reusePort, true, false],
  [{ INPOD_ENABLED: 'true' }, (c) => c.mode, 'shared', 'shared'],
  [{ PACKET_MARK: '7' }, (c) => plane(c).mark, 1337, 7],
  [{ ENABLE_ORIG_SRC: 'true' }, (c) => plane(c).transparent, 'attempt', 'required'],
  [{ ENABLE_ORIG_SRC: 'false' }, (c) => plane(c).transparent, 'attempt', 'never'],
  [{ IPV6_ENABLED: 'false' }, (c) => plane(c).ipv6, true, false],
  [
    { KEEPALIVE_TIME: '1m', KEEPALIVE_INTERVAL: '10', KEEPALIVE_RETRIES: '3', USER_TIMEOUT_ENABLED: 'true' },
    (c) => [plane(c).keepalive, c.userTimeoutMs],
    [{ timeSeconds: 180, intervalSeconds: 180, retries: 9, userTimeout: false }, undefined],
    [{ timeSeconds: 60, intervalSeconds: 10, retries: 3, userTimeout: true }, 90_000],
  ],
  [{ KEEPALIVE_ENABLED: 'false' }, (c) => plane(c).keepalive === undefined, false, true],
  [
    { HTTP2_STREAM_WINDOW_SIZE: '100000', HTTP2_CONNECTION_WINDOW_SIZE: '400000', HTTP2_FRAME_SIZE: '20000' },
    ({ http2 }) => [http2.streamWindow, http2.connectionWindow, http2.frameSize],
    [4_194_304, 16_777_216, 1_048_576],
    [100_000, 400_000, 20_000],
  ],
  [
    { POOL_MAX_STREAMS_PER_CONNECTION: '3', POOL_UNUSED_RELEASE_TIMEOUT: '1m' },
    (c) => plane(c).pool,
    { maxTunnelsPerConnection: 100, unusedTimeoutMs: 300_000 },
    { maxTunnelsPerConnection: 3, unusedTimeoutMs: 60_000 },
  ],
  [{ CONNECTION_TERMINATION_DEADLINE: '7s' }, (c) => c.drainDeadlineMs, 5000, 7000],
  [
    { CONNECTION_TERMINATION_DEADLINE: '7s', TERMINATION_GRACE_PERIOD_SECONDS: '30' },
    (c) => c.drainDeadlineMs,
    5000,
    7000,
  ],
  [{ TERMINATION_GRACE_PERIOD_SECONDS: '30' }, (c) => c.drainDeadlineMs, 5000, 25_000],
  [{ TERMINATION_GRACE_PERIOD_SECONDS: '10' }, (c) => c.drainDeadlineMs, 5000, 9000],
  [{ TERMINATION_GRACE_PERIOD_SECONDS: '0' }, (c) => c.drainDeadlineMs, 5000, 1000],
  [{ ZTUNNEL_WORKER_THREADS: '3' }, (c) => c.workerThreads, 2, 3],
  [{ ZTUNNEL_WORKER_THREADS: '0' }, (c) => c.workerThreads, 2, 4],
  [{ ZTUNNEL_WORKER_THREADS: '512' }, (c) => c.workerThreads, 2, 512],
  [{ ZTUNNEL_WORKER_THREADS: '0', ZTUNNEL_CPU_LIMIT: '100000' }, (c) => c.workerThreads, 2, 512],
  [{ ZTUNNEL_RESOURCE_CPU_LIMIT: '100000' }, (c) => c.workerThreads, 2, 512],
  [{ ZTUNNEL_CPU_LIMIT: '40' }, (c) => c.workerThreads, 2, 10],
  [{ ZTUNNEL_RESOURCE_CPU_LIMIT: '700m' }, (c) => c.workerThreads, 2, 1],
  [{ ZTUNNEL_RESOURCE_CPU_LIMIT: '6', ZTUNNEL_RESOURCE_CPU_REQUEST: '9' }, (c) => c.workerThreads, 2, 9],
  [{ PREFERED_SERVICE_NAMESPACE: 'n' }, (c) => c.preferredServiceNamespace, undefined, 'n'],
  [{ LOCALHOST_APP_TUNNEL: 'false' }, (c) => plane(c).localhostAppTunnel, true, false],
  [{ ENABLE_RESPONSE_BAGGAGE: 'false' }, (c) => plane(c).baggage, true, false],
  [{ CRL_PATH: '/c' }, (c) => c.crlPath, undefined, '/c'],
  [{ CRL_PATH: '' }, (c) => c.crlPath, undefined, undefined],
  [
    { UNSTABLE_ENABLE_SOCKS5: 'true' },
    (c) => [plane(c).ports.socks5, c.illegalPorts.has(15080)],
    [undefined, false],
    [15_080, true],
  ],
  [{ TLS12_ENABLED: 'true' }, (c) => plane(c).allowTls12, false, true],
  [{ COMPLIANCE_POLICY: 'pqc' }, (c) => plane(c).groups, undefined, 'X25519MLKEM768'],
  [{ AUTHZ_POLICY_INFO_LOGGING: 'true' }, (c) => plane(c).policyLogLevel, 'debug', 'info'],
  [
    { RUST_LOG: 'warn,ztunnel::dns=debug' },
    (c) => [...c.logFilter],
    [['', 'info']],
    [
      ['', 'warn'],
      ['dns', 'debug'],
    ],
  ],
  [{ RUST_LOG: 'warn', LATEEN_LOG: 'error' }, (c) => [...c.logFilter], [['', 'info']], [['', 'error']]],
  [{ LOG_FORMAT: 'json' }, (c) => c.logFormat, 'plain', 'json'],
  [{ ISTIO_META_ISTIO_VERSION: '1.27' }, (c) => c.istioVersion, 'unknown', '1.27'],
  [{ ISTIO_META_A: 'x' }, (c) => c.proxyMetadata, {}, { A: 'x' }],
  [{ ISTIO_METAJSON_A: '[1]' }, (c) => c.jsonMetadata, {}, { A: [1] }],
]

for (const [env, read, otherwise, then] of settings) {
  test(
    Object.entries(env)
      .map(([name, value]) => `${name}=${value}`)
      .join(' '),
    () => {
      assert.deepEqual(read(load({})), otherwise)
      assert.deepEqual(read(load(env)), then)
    },
  )
}

test('a local file takes its place by path as well, and an empty PROXY_CONFIG is none', () => {
  const readFile = (path: string) => (path === 'f' ? 'services: []' : undefined)
  const { localContent } = loadConfig({
    env: { LOCAL_XDS_PATH: 'f', PROXY_CONFIG: '' },
    machineCpus: 1,
    knowsKeyExchange: () => true,
    readFile,
  })
  assert.deepEqual(localContent, { workloads: [], services: [], policies: [] })
})

test('every boolean is true or false and nothing else', () => {
  const booleans = [
    'ENABLE_PROXY',
    'XDS_ON_DEMAND',
    'FAKE_CA',
    'INPOD_PORT_REUSE',
    'ENABLE_ORIG_SRC',
    'IPV6_ENABLED',
    'KEEPALIVE_ENABLED',
    'USER_TIMEOUT_ENABLED',
    'LOCALHOST_APP_TUNNEL',
    'ENABLE_RESPONSE_BAGGAGE',
    'UNSTABLE_ENABLE_SOCKS5',
    'TLS12_ENABLED',
    'AUTHZ_POLICY_INFO_LOGGING',
  ]
  for (const name of booleans) {
    for (const value of ['yes', '1', 'True', 'false ']) {
      assert.throws(() => load({ [name]: value }), { message: new RegExp(`^invalid env var ${name}=${value} \\(`) })
    }
  }
})

test('what cannot be read is named by its variable', () => {
  const cases: readonly [Record<string, string>, RegExp][] = [
    [
      { ZTUNNEL_WORKER_THREADS: '513' },
      /^invalid env var ZTUNNEL_WORKER_THREADS=513 \(expected a whole number from 0 to 512\)$/,
    ],
    [
      { ZTUNNEL_WORKER_THREADS: '150%' },
      /^invalid env var ZTUNNEL_WORKER_THREADS=150% \(percentage must be between 0 and 100\)$/,
    ],
    [{ PROXY_CONFIG: '{concurrency: 513}' }, /concurrency: expected a whole number up to 512, got 513$/],
    [{ RUST_LOG: 'a=b' }, /^RUST_LOG: invalid log filter entry 'a=b'/],
    [{ RUST_LOG: 'info', LATEEN_LOG: 'a=b' }, /^LATEEN_LOG: invalid log filter entry 'a=b'/],
    [{ LOCAL_XDS: 'works: []' }, /^LOCAL_XDS: local configuration\.works: unknown key works/],
  ]
  for (const [env, message] of cases) assert.throws(() => load(env), { code: 'INVALID_CONFIG', message })
  const readFile = () => 'workloads: 1'
  assert.throws(
    () => loadConfig({ env: { LOCAL_XDS_PATH: '/f' }, machineCpus: 1, knowsKeyExchange: () => true, readFile }),
    {
      code: 'INVALID_CONFIG',
      message: /^LOCAL_XDS_PATH: \/f: local configuration\.workloads: expected a list, got 1$/,
    },
  )
})
