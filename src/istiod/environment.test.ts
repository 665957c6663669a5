// What each variable of the environment sets, and what holds without it.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type DiscoverySettings, readSettings } from './settings.ts'

const load = (env: Readonly<Record<string, string>>): DiscoverySettings => readSettings({}, env, 2)

type Setting = readonly [
  env: Readonly<Record<string, string>>,
  read: (settings: DiscoverySettings) => unknown,
  otherwise: unknown,
  then: unknown,
]

const external = { EXTERNAL_CA: 'ISTIOD_RA_KUBERNETES_API' }
const issuer = { TOKEN_ISSUER: 'https://i', AUDIENCE: 'a' }

const settings: readonly Setting[] = [
  [{ POD_NAME: 'p' }, (s) => s.podName, `istiod-${process.pid}`, 'p'],
  [
    { POD_NAMESPACE: 'n' },
    (s) => [s.namespace, s.clusterRegistriesNamespace, s.ambient.systemNamespace],
    ['istio-system', 'istio-system', 'istio-system'],
    ['n', 'n', 'n'],
  ],
  [{ REVISION: 'canary' }, (s) => s.revision, 'default', 'canary'],
  [{ K_REVISION: 'istiod-00001' }, (s) => s.warmsUp, false, true],
  [{ CLUSTER_ID: 'c' }, (s) => [s.clusterId, s.ambient.clusterId], ['Kubernetes', 'Kubernetes'], ['c', 'c']],
  [{ SHARED_MESH_CONFIG: 'm' }, (s) => s.sharedMeshConfig, '', 'm'],
  [{ ISTIO_WATCH_NAMESPACE: 'n' }, (s) => s.watchNamespace, '', 'n'],
  [
    { PILOT_IGNORE_RESOURCES: '*.a, b.c' },
    (s) => s.kinds,
    { ignore: [], include: [] },
    { ignore: ['*.a', 'b.c'], include: [] },
  ],
  [{ PILOT_INCLUDE_RESOURCES: 'b.c' }, (s) => s.kinds, { ignore: [], include: [] }, { ignore: [], include: ['b.c'] }],
  [{ ISTIOD_CUSTOM_HOST: 'a.example,b.example' }, (s) => s.customHosts, [], ['a.example', 'b.example']],
  [{ TOKEN_AUDIENCES: 'a,b' }, (s) => s.authentication.tokenAudiences, ['istio-ca'], ['a', 'b']],
  [{ TOKEN_AUDIENCES: '' }, (s) => s.authentication.tokenAudiences, ['istio-ca'], ['istio-ca']],
  [
    { JWT_RULE: '{"issuer": "https://i", "audiences": ["a"], "jwks_uri": "https://k"}' },
    (s) => s.authentication.tokenRules,
    [],
    [{ issuer: 'https://i', audiences: ['a'], jwksUri: 'https://k' }],
  ],
  [issuer, (s) => s.authentication.tokenRules, [], [{ issuer: 'https://i', audiences: ['a'] }]],
  [
    { TRUSTED_GATEWAY_CIDR: '10.0.0.0/8,fd00::1' },
    (s) => s.authentication.trustedGatewayCidrs,
    [],
    ['10.0.0.0/8', 'fd00::1'],
  ],
  [
    { SPIFFE_BUNDLE_ENDPOINTS: 'a.example|https://a||b.example|https://b' },
    (s) => s.spiffeBundleEndpoints,
    [],
    [
      { trustDomain: 'a.example', url: 'https://a' },
      { trustDomain: 'b.example', url: 'https://b' },
    ],
  ],
  [
    { XDS_AUTH: 'false' },
    (s) => s.authenticates,
    { onTls: true, onPlaintext: false },
    { onTls: false, onPlaintext: false },
  ],
  [
    { XDS_AUTH_PLAINTEXT: 'true' },
    (s) => s.authenticates,
    { onTls: true, onPlaintext: false },
    { onTls: true, onPlaintext: true },
  ],
  [{ PILOT_ENABLE_XDS_IDENTITY_CHECK: 'false' }, (s) => s.checkNodeIdentity, true, false],
  [{ ENABLE_XDS_API_GENERATOR_AUTH: 'false' }, (s) => s.restrictsExport, true, false],
  [{ PILOT_ENABLE_AMBIENT: 'false' }, (s) => s.servesNodeProxies, true, false],
  [{ PILOT_MAX_REQUESTS_PER_SECOND: '7' }, (s) => s.streamsPerSecond, 25, 7],
  [{ ISTIO_GPRC_MAXRECVMSGSIZE: '1024' }, (s) => s.maxReceiveBytes, 16 * 1024 * 1024, 1024],
  [{ ISTIO_GPRC_MAXSTREAMS: '9' }, (s) => s.maxConcurrentStreams, 100_000, 9],
  [{ PILOT_XDS_SEND_TIMEOUT: '5s' }, (s) => s.sendTimeoutMs, 60_000, 5_000],
  [{ LATEEN_CONNECTION_PROOF_TIMEOUT: '2s' }, (s) => s.connectionLimits.provingMs, 30_000, 2_000],
  [{ LATEEN_CONNECTION_IDLE_TIMEOUT: '1m' }, (s) => s.connectionLimits.idleMs, 300_000, 60_000],
  [{ LATEEN_MAX_UNPROVEN_CONNECTIONS: '3' }, (s) => s.connectionLimits.mostUnproven, 1_000, 3],
  [
    { LATEEN_WORKLOAD_DEBOUNCE_AFTER: '20ms' },
    (s) => s.quietTimes,
    { afterMs: 10, maxMs: 100 },
    { afterMs: 20, maxMs: 100 },
  ],
  [
    { LATEEN_WORKLOAD_DEBOUNCE_MAX: '1s' },
    (s) => s.quietTimes,
    { afterMs: 10, maxMs: 100 },
    { afterMs: 10, maxMs: 1_000 },
  ],
  [{ ENABLE_DEBUG_ON_HTTP: 'false' }, (s) => s.debugOnHttp, true, false],
  [{ ENABLE_DEBUG_ENDPOINT_AUTH: 'false' }, (s) => s.debugAuth, true, false],
  [{ DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES: 'a,b' }, (s) => s.debugNamespaces, [], ['a', 'b']],
  [{ UNSAFE_ENABLE_ADMIN_ENDPOINTS: 'true' }, (s) => s.adminPages, false, true],
  [{ ENABLE_CA_SERVER: 'false' }, (s) => s.servesCertificates, true, false],
  [{ CA_TRUSTED_NODE_ACCOUNTS: 'n/a' }, (s) => s.trustedNodeAccounts, '', 'n/a'],
  [{ ROOT_CA_DIR: '/ca' }, (s) => s.caDir, './etc/cacerts', '/ca'],
  [{ CITADEL_SELF_SIGNED_CA_CERT_TTL: '24h' }, (s) => s.caTtlSeconds, 3650 * 86_400, 86_400],
  [{ CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE: '4096' }, (s) => s.caRsaBits, 2048, 4096],
  [
    { DEFAULT_WORKLOAD_CERT_TTL: '1h' },
    (s) => [s.defaultWorkloadTtlSeconds, s.maxWorkloadTtlSeconds],
    [86_400, 90 * 86_400],
    [3_600, 90 * 86_400],
  ],
  [
    { MAX_WORKLOAD_CERT_TTL: '48h' },
    (s) => [s.defaultWorkloadTtlSeconds, s.maxWorkloadTtlSeconds],
    [86_400, 90 * 86_400],
    [86_400, 2 * 86_400],
  ],
  [
    { ...external, K8S_SIGNER: 'a.b/c' },
    (s) => s.certificates.signer,
    { kind: 'own' },
    { kind: 'kubernetes', defaultSigner: 'a.b/c', certSignerDomain: '' },
  ],
  [
    { ...external, CERT_SIGNER_DOMAIN: 'a.b' },
    (s) => s.certificates.signer,
    { kind: 'own' },
    { kind: 'kubernetes', defaultSigner: '', certSignerDomain: 'a.b' },
  ],
  [
    { PILOT_CERT_PROVIDER: 'k8s.io/a.b/c' },
    (s) => [s.certificates.servingSigner, s.certificates.issuesServing],
    ['', true],
    ['a.b/c', true],
  ],
  [
    { PILOT_CERT_PROVIDER: 'none' },
    (s) => [s.certificates.servingSigner, s.certificates.issuesServing],
    ['', true],
    ['', false],
  ],
  [{ USE_REMOTE_CERTS: 'true' }, (s) => s.certificates.readsSecret, false, true],
  [{ USE_CACERTS_FOR_SELF_SIGNED_CA: 'true' }, (s) => s.certificates.keepsInCacerts, false, true],
  [{ CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: '1m' }, (s) => s.certificates.rootCheckSeconds, 3_600, 60],
  [{ CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE: '50' }, (s) => s.certificates.rootGraceRatio, 0.2, 0.5],
  [{ CITADEL_ENABLE_JITTER_FOR_ROOT_CERT_ROTATOR: 'false' }, (s) => s.certificates.rootCheckHasJitter, true, false],
  [{ LATEEN_ROOT_ROTATION_NEW_KEY: 'false' }, (s) => s.certificates.rootOverlapSeconds, 48 * 3_600, undefined],
  [{ LATEEN_ROOT_ROTATION_OVERLAP: '1h' }, (s) => s.certificates.rootOverlapSeconds, 48 * 3_600, 3_600],
  [{ ISTIO_MULTIROOT_MESH: 'true' }, (s) => s.certificates.isMultiRoot, false, true],
  [{ ENABLE_CLUSTER_TRUST_BUNDLE_API: 'true' }, (s) => s.certificates.usesTrustBundles, false, true],
  [{ PILOT_CA_CERT_CONFIGMAP: 'roots' }, (s) => s.certificates.rootConfigMap, 'istio-ca-root-cert', 'roots'],
  [{ PILOT_CRL_CONFIGMAP: 'lists' }, (s) => s.certificates.crlConfigMap, 'istio-ca-crl', 'lists'],
  [{ PILOT_ENABLE_CA_CRL: 'false' }, (s) => s.certificates.distributesCrl, true, false],
  [{ ENABLE_LEADER_ELECTION: 'false' }, (s) => s.leaderElection, true, false],
  [{ PILOT_STATUS_MAX_WORKERS: '3' }, (s) => s.statusWriters, 10, 3],
  [{ AMBIENT_ENABLE_STATUS: 'false' }, (s) => s.writeStatus, true, false],
  [{ PILOT_ENABLE_IP_AUTOALLOCATE: 'false' }, (s) => s.ambient.allocateAddresses, true, false],
  [
    { PILOT_IP_AUTOALLOCATE_IPV4_PREFIX: '10.9.0.0/16' },
    (s) => s.addressRanges,
    { ipv4Prefix: '240.240.0.0/16', ipv6Prefix: '2001:2::/48' },
    { ipv4Prefix: '10.9.0.0/16', ipv6Prefix: '2001:2::/48' },
  ],
  [
    { PILOT_IP_AUTOALLOCATE_IPV6_PREFIX: 'fd00::/64' },
    (s) => s.addressRanges,
    { ipv4Prefix: '240.240.0.0/16', ipv6Prefix: '2001:2::/48' },
    { ipv4Prefix: '240.240.0.0/16', ipv6Prefix: 'fd00::/64' },
  ],
  [{ PILOT_ENABLE_SERVICEENTRY_SELECT_PODS: 'false' }, (s) => s.ambient.serviceEntriesSelectPods, true, false],
  [{ PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES: 'false' }, (s) => s.ambient.servicesSelectWorkloadEntries, true, false],
  [{ AMBIENT_ENABLE_MULTI_NETWORK: 'true' }, (s) => s.ambient.multiNetwork, false, true],
  [{ AMBIENT_ENABLE_DRY_RUN_AUTHORIZATION_POLICY: 'true' }, (s) => s.ambient.dryRunPolicies, false, true],
  [{ PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION: 'false' }, (s) => s.registration.registers, true, false],
  [{ PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS: 'false' }, (s) => s.registration.checksHealth, true, false],
  [{ PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: '3s' }, (s) => s.registration.graceMs, 10_000, 3_000],
  [{ ISTIO_WORKLOAD_ENTRY_VALIDATE_IDENTITY: 'false' }, (s) => s.registration.validatesIdentity, true, false],
  [{ PILOT_AUTO_ALLOW_WAYPOINT_POLICY: 'true' }, (s) => s.ambient.autoAllowWaypoints, false, true],
  [{ PILOT_REMOTE_CLUSTER_TIMEOUT: '0' }, (s) => s.remoteClusterTimeoutMs, 30_000, 0],
  [{ PILOT_MULTICLUSTER_KUBECONFIG_PATH: '/k' }, (s) => s.remoteKubeconfigPath, '', '/k'],
  [{ PILOT_INSECURE_MULTICLUSTER_KUBECONFIG_OPTIONS: 'exec' }, (s) => s.allowedKubeconfigOptions, [], ['exec']],
]

for (const [env, read, otherwise, then] of settings) {
  const name = Object.entries(env).map(([variable, value]) => `${variable}=${value}`)
  test(name.join(' '), () => {
    assert.deepEqual(read(load({})), otherwise)
    assert.deepEqual(read(load(env)), then)
  })
}

test('no variable of the operator’s page is left out', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/control-plane.md'), 'utf8')
  const rows = page
    .slice(page.indexOf('## Environment'), page.indexOf('## Variables without effect'))
    .matchAll(/^\| (`.*?) \|/gm)
  const documented = [...rows].flatMap(([, names = '']) =>
    names
      .matchAll(/`([A-Z0-9_]+)`/g)
      .map(([, name]) => name)
      .toArray(),
  )
  const looked = new Set(settings.flatMap(([env]) => Object.keys(env)))
  assert.deepEqual(documented.sort(), [...looked].sort())
})

test('a switch is true or false and nothing else', () => {
  const switches = settings.flatMap(([env]) => Object.entries(env)).filter(([, value]) => /^(true|false)$/.test(value))
  assert.ok(switches.length > 25)
  for (const [name] of switches) {
    for (const value of ['yes', 'on', 'false ']) {
      assert.throws(() => load({ [name]: value }), {
        code: 'INVALID_SETTING',
        message: `${name}: expected true or false, not "${value}"`,
      })
    }
  }
})
