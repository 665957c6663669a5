// What tools are told over xDS of the clients of the control plane.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { timestampDate } from '@bufbuild/protobuf/wkt'
import { status } from '@grpc/grpc-js'
import { csds } from '../proto/control-plane/index.ts'
import { core } from '../proto/index.ts'
import type { Connection, EncodedResource, ServedType, Watch, XdsClient } from '../xds/index.ts'
import { debugPages } from './debug.ts'
import { statusTypes } from './status-types.ts'
import { syncOf } from './sync-status.ts'
import { debugSourcesOf, proxyOf } from './testing.ts'

const typeOf = (name: string): string => `type.googleapis.com/${name}`
const address = typeOf('istio.workload.Address')
const cluster = typeOf('envoy.config.cluster.v3.Cluster')
const sentAt = new Date('2030-01-02T03:04:05.000Z')

const held: EncodedResource = { name: 'a', aliases: [], version: 'v1', body: new TextEncoder().encode('A') }
const source: ServedType['source'] = {
  typeUrl: address,
  synced: true,
  list: () => [held],
  get: (name) => (name === held.name ? held : undefined),
  subscribe: () => () => {},
}

type Sent = Partial<Pick<Watch, 'wildcard' | 'nonceSent' | 'nonceAcked' | 'lastError' | 'lastSentAt'>> & {
  readonly names?: readonly string[]
}

const watchOf = ({ names = [], ...state }: Sent): Watch => ({
  type: { source, isWildcard: true },
  wildcard: false,
  names: new Set(names),
  pending: new Map(),
  wave: undefined,
  later: { pending: new Map(), wave: undefined },
  alwaysRespond: false,
  nonceSent: '',
  nonceAcked: '',
  nonceRejected: '',
  lastError: undefined,
  lastSentAt: undefined,
  ...state,
})

function proxy(namespace: string, type: 'ztunnel' | 'sidecar', metadata: object, watches: Record<string, Sent>) {
  const one: Connection = proxyOf(namespace)
  return {
    ...one,
    node: { ...one.node, id: `${type}~1.1.1.1~web.${namespace}~x`, type, metadata: { ...metadata } },
    watches: new Map(Object.entries(watches).map(([typeUrl, state]) => [typeUrl, watchOf(state)])),
  }
}

const sent = { nonceSent: 'n2', lastSentAt: sentAt }
const ztunnel = proxy(
  'istio-system',
  'ztunnel',
  { CLUSTER_ID: 'c1', ISTIO_VERSION: '1.29', LABELS: { app: 'z' } },
  {
    [address]: { ...sent, wildcard: true, nonceAcked: 'n2' },
    [typeOf('istio.security.Authorization')]: { ...sent, nonceAcked: 'n1' },
    [typeOf('istio.workload.Workload')]: { ...sent, lastError: 'no room', nonceAcked: 'n1' },
    [cluster]: {},
  },
)
const sidecar = proxy('app', 'sidecar', { PROXY_CONFIG: {} }, { [address]: { ...sent, names: ['a', 'gone'] } })
const other = proxy('shop', 'sidecar', { PROXY_CONFIG: {} }, {})
/** No proxy of the mesh: another control plane, say. */
const unconfigured = proxy('shop', 'sidecar', {}, {})
const connections: readonly Connection[] = [ztunnel, sidecar, other, unconfigured]

const clientOf = (...namespaces: readonly string[]): XdsClient => ({
  nodeId: 'debug',
  metadata: {},
  identities: namespaces.map((namespace) => `spiffe://td/ns/${namespace}/sa/x`),
})
const operator = clientOf('istio-system')

function ask(typeUrl: string, client: XdsClient, names: readonly string[] = [], requireAuthentication = true) {
  const types = statusTypes({
    pages: debugPages(debugSourcesOf({ connections: () => connections, sources: [source] })),
    connections: () => connections,
    requireAuthentication,
    systemNamespace: 'istio-system',
    allowedNamespaces: ['monitoring'],
  })
  const type = types.find((one) => one.typeUrl === typeUrl)
  assert.ok(type, typeUrl)
  return type.answer(client, names)
}

const textOf = ({ body }: EncodedResource): string => new TextDecoder().decode(body)

describe('the sync state of clients', () => {
  for (const typeUrl of ['istio.io/debug/syncz', 'istio.io/syncz']) {
    test(`${typeUrl}: what each proxy was sent, and what became of it`, () => {
      const answered = ask(typeUrl, operator)
      assert.deepEqual(
        answered.map(({ name, bodyType }) => [name, bodyType]),
        [ztunnel, sidecar, other].map(({ node }) => [node.id, typeOf('envoy.service.status.v3.ClientConfig')]),
      )
      const [first] = answered.map(({ body }) => fromBinary(csds.ClientConfigSchema, body))
      assert.equal(first?.node?.id, ztunnel.node.id)
      assert.deepEqual(first?.node?.metadata, ztunnel.node.metadata)
      const told = first?.genericXdsConfigs.map((config) => [
        config.typeUrl,
        csds.ConfigStatus[config.configStatus],
        config.lastUpdated === undefined ? undefined : timestampDate(config.lastUpdated),
        config.errorState?.details,
      ])
      assert.deepEqual(told, [
        [address, 'SYNCED', sentAt, undefined],
        [typeOf('istio.security.Authorization'), 'STALE', sentAt, undefined],
        [typeOf('istio.workload.Workload'), 'ERROR', sentAt, 'no room'],
        [cluster, 'NOT_SENT', undefined, undefined],
      ])
    })
  }

  test('as the page tells it, by type and by the names that older tools know', () => {
    const here = { clusterId: 'Kubernetes', version: '1.0' }
    const entry = (acked: string, lastError?: string) => ({
      sent: 'n2',
      acked,
      sentTime: sentAt.toISOString(),
      lastError,
    })
    assert.deepEqual(syncOf(ztunnel, here), {
      cluster_id: 'c1',
      proxy: 'web.istio-system',
      proxy_type: 'ztunnel',
      istio_version: '1.29',
      resources: {
        [address]: entry('n2'),
        [typeOf('istio.security.Authorization')]: entry('n1'),
        [typeOf('istio.workload.Workload')]: entry('n1', 'no room'),
        [cluster]: { sent: '', acked: '', sentTime: undefined, lastError: undefined },
      },
    })
    const envoy = proxy('app', 'sidecar', {}, { [cluster]: { ...sent, nonceAcked: 'n1' } })
    const { resources: _, ...named } = syncOf(envoy, here)
    assert.deepEqual(named, {
      cluster_id: 'Kubernetes',
      proxy: 'web.app',
      proxy_type: 'sidecar',
      istio_version: '1.0',
      cluster_sent: 'n2',
      cluster_acked: 'n1',
    })
  })
})

describe('the clients', () => {
  test('are the nodes as which they have introduced themselves', () => {
    const answered = ask('istio.io/connections', operator)
    assert.deepEqual(
      answered.map(({ name, bodyType }) => [name, bodyType]),
      [ztunnel, sidecar, other].map(({ id }) => [id, typeOf('envoy.config.core.v3.Node')]),
    )
    const nodes = answered.map(({ body }) => fromBinary(core.NodeSchema, body))
    assert.deepEqual(
      nodes.map(({ id, metadata }) => [id, metadata]),
      [ztunnel, sidecar, other].map(({ node }) => [node.id, node.metadata]),
    )
  })

  test('are those of its own namespaces to a caller without further rights, and none to nobody', () => {
    for (const typeUrl of ['istio.io/connections', 'istio.io/debug/syncz']) {
      const seen = (client: XdsClient, requireAuthentication = true) =>
        ask(typeUrl, client, [], requireAuthentication).length
      assert.equal(seen(clientOf('app')), 1)
      assert.equal(seen(clientOf('app', 'shop')), 2)
      assert.equal(seen(clientOf('elsewhere')), 0)
      assert.equal(seen({ ...operator, identities: ['web.example'] }), 0)
      assert.equal(seen(clientOf('monitoring')), 3)
      assert.throws(() => seen(clientOf()), { code: status.UNAUTHENTICATED, message: 'authentication required' })
      assert.equal(seen(clientOf(), false), 3)
    }
  })
})

describe('what a client was given', () => {
  const dumps = (client: XdsClient, ...names: string[]) => ask('istio.io/debug/config_dump', client, names)

  test('is told for each proxy that is asked for', () => {
    const [first, second, ...more] = dumps(operator, 'web.istio-system', 'web.app')
    assert.deepEqual(more, [])
    assert.deepEqual([first?.name, first?.bodyType], ['web.istio-system', 'istio.io/debug/config_dump'])
    assert.ok(second)
    assert.deepEqual(JSON.parse(textOf(second)), {
      proxy: 'web.app',
      clients: [
        {
          connection: 'web.app-1',
          address: '',
          identities: [],
          configs: [
            {
              typeUrl: address,
              subscribed: ['a', 'gone'],
              resources: [{ name: 'a', version: 'v1', body: Buffer.from('A').toString('base64') }],
            },
          ],
        },
      ],
    })
  })

  test('is nothing for proxies that are not connected, or of other namespaces than the caller’s', () => {
    assert.deepEqual(dumps(operator, 'web.nowhere'), [])
    assert.deepEqual(
      dumps(clientOf('app'), 'web.istio-system', 'web.app').map(({ name }) => name),
      ['web.app'],
    )
    assert.throws(() => dumps(clientOf(), 'web.app'), { code: status.UNAUTHENTICATED })
  })
})

describe('debug pages', () => {
  const page = (client: XdsClient, ...names: string[]) => ask('istio.io/debug', client, names)

  test('are asked for one at a time, with their query', () => {
    const [answer, ...more] = page(operator, 'syncz?namespace=app')
    assert.ok(answer !== undefined && more.length === 0)
    assert.deepEqual([answer.name, answer.bodyType], ['syncz?namespace=app', 'istio.io/debug'])
    assert.deepEqual(
      (JSON.parse(textOf(answer)) as { proxy: string }[]).map((one) => one.proxy),
      ['web.app'],
    )
    for (const names of [[], ['syncz', 'adsz']]) {
      const error = { code: status.INVALID_ARGUMENT, message: 'exactly one debug request is required' }
      assert.throws(() => page(operator, ...names), error)
    }
    assert.throws(() => page(operator, 'toString'), { code: status.NOT_FOUND })
  })

  test('are for those who may see them', () => {
    assert.throws(() => page(clientOf('app'), 'syncz'), {
      code: status.PERMISSION_DENIED,
      message: 'the debug info is not available for current identity: spiffe://td/ns/app/sa/x',
    })
    assert.equal(page(clientOf('app'), 'config_dump?proxyID=web.app').length, 1)
    assert.throws(() => page(clientOf(), 'syncz'), { code: status.UNAUTHENTICATED })
  })
})
