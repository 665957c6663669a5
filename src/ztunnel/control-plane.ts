// The node proxy's two connections to the control plane: the mesh by xDS, certificates by the CA.
import { readFile } from 'node:fs/promises'
import { getCACertificates } from 'node:tls'
import { type CaClient, createCaClient } from '../ca/client/index.ts'
import type { Scope } from '../observability/index.ts'
import { createDeltaClient, type DeltaClient } from '../xds/client/index.ts'
import type { ControlPlaneEndpoint, RootSource, ZtunnelConfig } from './config/index.ts'
import { createOnDemandAddresses, type OnDemandAddresses } from './on-demand/index.ts'
import { warnOfOtherNetworks } from './other-network.ts'
import { addressTypeUrl, authorizationTypeUrl, createDeltaReceiver, type MeshState } from './state/index.ts'
import type { ZtunnelMetrics } from './telemetry/index.ts'

export interface MeshSource extends AsyncDisposable {
  readonly synced: Promise<void>
  /** On-demand mode only. */
  readonly onDemand?: OnDemandAddresses
}

/** Follows the mesh at the control plane. */
export function connectXds(
  config: ZtunnelConfig,
  endpoint: ControlPlaneEndpoint,
  given: { readonly state: MeshState; readonly metrics: ZtunnelMetrics; readonly log: Scope },
): MeshSource {
  const { host, port, hostname } = new URL(endpoint.address)
  const receive = createDeltaReceiver(given.state)
  const endWarnings = warnOfOtherNetworks(given.state, config, (message) => given.log.warn(message))
  const onDemand = config.xdsOnDemand
    ? createOnDemandAddresses({
        view: given.state,
        subscribe: (key) => client.subscribe(addressTypeUrl, key),
        unsubscribe: (key) => client.unsubscribe(addressTypeUrl, key),
      })
    : undefined
  const client: DeltaClient = createDeltaClient({
    address: port === '' ? `${host}:443` : host,
    transport: {
      kind: 'tls',
      roots: () => readRoots(endpoint.roots),
      serverName: hostname.replace(/^\[|\]$/g, ''),
      ...(endpoint.altHostname === undefined ? {} : { alternativeName: endpoint.altHostname }),
    },
    headers: async () => {
      const token = await readToken(config)
      return {
        ...endpoint.headers,
        clusterid: config.clusterId,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      }
    },
    node: nodeOf(config),
    types: [{ typeUrl: addressTypeUrl, onDemand: config.xdsOnDemand }, { typeUrl: authorizationTypeUrl }],
    onUpdate(update) {
      given.metrics.xdsMessages.with({ url: update.typeUrl }).inc()
      const bytes = update.resources.reduce((sum, { body }) => sum + body.length, 0)
      given.metrics.xdsMessageBytes.with({ url: update.typeUrl }).inc(bytes)
      const verdict = receive(update)
      if (update.typeUrl === addressTypeUrl) onDemand?.received(update)
      return verdict
    },
    onStreamEnd: (end, recycled) => given.metrics.xdsTerminations.with({ reason: terminationOf(end, recycled) }).inc(),
    log: given.log,
  })
  return {
    synced: client.synced,
    ...(onDemand === undefined ? {} : { onDemand }),
    async [Symbol.asyncDispose]() {
      endWarnings()
      await client[Symbol.asyncDispose]()
    },
  }
}

function terminationOf(end: 'closed' | 'not-connected' | 'status', recycled: boolean): string {
  if (end === 'not-connected') return 'ConnectionError'
  if (end === 'closed') return 'Complete'
  return recycled ? 'Reconnect' : 'Error'
}

function nodeOf(config: ZtunnelConfig): { id: string; metadata: Record<string, unknown> } {
  const { instanceIp, podName, podNamespace, node } = config
  return {
    id: `ztunnel~${instanceIp}~${podName}.${podNamespace}~${podNamespace}.svc.cluster.local`,
    metadata: {
      NAME: podName,
      NAMESPACE: podNamespace,
      INSTANCE_IPS: instanceIp,
      ...(node === undefined ? {} : { NODE_NAME: node }),
      ...config.proxyMetadata,
      ...config.jsonMetadata,
    },
  }
}

/** The CA, for the identities of this node's pods; in dedicated mode for our own only. */
export function connectCa(config: ZtunnelConfig, endpoint: ControlPlaneEndpoint, log: Scope): CaClient {
  return createCaClient({
    address: endpoint.address,
    roots: endpoint.roots,
    ...(endpoint.altHostname === undefined ? {} : { alternativeHostname: endpoint.altHostname }),
    token: () => readToken(config),
    clusterId: config.clusterId,
    headers: endpoint.headers,
    validitySeconds: config.secretTtlMs / 1000,
    impersonate: config.mode === 'shared',
    warn: (message) => log.warn(message),
  })
}

async function readRoots(source: RootSource): Promise<string> {
  switch (source.kind) {
    case 'file':
      return readFile(source.path, 'utf8')
    case 'pem':
      return source.pem
    case 'system':
      return getCACertificates('system').join('\n')
  }
}

/** Read for every request: tokens are replaced before they expire. */
async function readToken({ authToken }: ZtunnelConfig): Promise<string | undefined> {
  if (authToken === undefined) return undefined
  return authToken.kind === 'literal' ? authToken.token : (await readFile(authToken.path, 'utf8')).trim()
}
