// The debug pages of the control plane, and who may see them.
import type { IncomingMessage } from 'node:http'
import { type AuthenticationRequest, type Authenticator, authenticate, parseSpiffe } from '../ca/index.ts'
import type { Graph } from '../collections/index.ts'
import type { Connection, ResourceSource, Watch } from '../xds/index.ts'
import { jsonReply, type Reply, type Route, textReply } from './http-server.ts'

export interface DebugOptions {
  readonly connections: () => readonly Connection[]
  readonly graph: Graph
  readonly sources: readonly ResourceSource[]
  readonly meshConfig: () => unknown
  readonly clusterId: string
  readonly version: string
  readonly systemNamespace: string
  /** Further namespaces whose identities see everything. */
  readonly allowedNamespaces: readonly string[]
  readonly authenticators: readonly Authenticator[]
  readonly requireAuthentication: boolean
}

/** Pages that any namespace may see for its own proxies. */
const openToAll: ReadonlySet<string> = new Set(['config_dump', 'ndsz', 'edsz'])

/** The route of a path below /debug/. */
export function debugRoutes(options: DebugOptions): (path: string) => Route | undefined {
  const pages: Readonly<Record<string, (url: URL) => Reply>> = {
    list: (url) => jsonReply(Object.keys(pages).sort(), isPretty(url)),
    syncz: (url) => {
      const namespace = url.searchParams.get('namespace')
      const shown = options.connections().filter(({ node }) => namespace === null || node.namespace === namespace)
      return jsonReply(
        shown.map((connection) => syncOf(connection, options)),
        isPretty(url),
      )
    },
    adsz: (url) => jsonReply(clientsOf(options.connections()), isPretty(url)),
    connections: (url) => jsonReply(clientsOf(options.connections()), isPretty(url)),
    krtz: (url) => jsonReply(options.graph.describe(), isPretty(url)),
    collections: (url) => jsonReply(options.graph.describe(), isPretty(url)),
    resourcesz: (url) => jsonReply(resourcesOf(options.sources), isPretty(url)),
    mesh: (url) => jsonReply(options.meshConfig(), isPretty(url)),
  }
  return (path) => {
    const name = path === '/debug' || path === '/debug/' ? 'list' : path.replace(/^\/debug\//, '')
    const page = Object.hasOwn(pages, name) ? pages[name] : undefined
    if (page === undefined) return undefined
    return async (request, url) => (await refusal(options, request, name)) ?? page(url)
  }
}

async function refusal(options: DebugOptions, request: IncomingMessage, page: string): Promise<Reply | undefined> {
  if (!options.requireAuthentication || isLoopback(request.socket.remoteAddress ?? '')) return undefined
  const outcome = await authenticate(options.authenticators, requestOf(request))
  if (outcome.kind === 'refused') return textReply(401, 'authentication required\n')
  return mayDebug(outcome.caller.identities, page, options) ? undefined : textReply(403, 'forbidden\n')
}

/** Whether one of the identities may see the page. */
export function mayDebug(
  identities: readonly string[],
  page: string,
  rights: Pick<DebugOptions, 'systemNamespace' | 'allowedNamespaces'>,
): boolean {
  return identities.some((identity) => {
    try {
      const { namespace } = parseSpiffe(identity)
      if (namespace === '') return false
      return namespace === rights.systemNamespace || rights.allowedNamespaces.includes(namespace) || openToAll.has(page)
    } catch {
      return false
    }
  })
}

function requestOf(request: IncomingMessage): AuthenticationRequest {
  return {
    peerAddress: `${request.socket.remoteAddress ?? ''}:${request.socket.remotePort ?? 0}`,
    header: (name) => [request.headers[name] ?? []].flat(),
  }
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address)
}

function isPretty(url: URL): boolean {
  return url.searchParams.has('pretty')
}

function clientsOf(connections: readonly Connection[]) {
  return {
    totalClients: connections.length,
    clients: connections.map(({ id, connectedAt, peer, node, watches }) => ({
      connectionId: id,
      connectedAt: connectedAt.toISOString(),
      address: peer,
      metadata: node.metadata,
      watches: Object.fromEntries(
        [...watches].map(([type, watch]) => [type, watch.wildcard ? ['*'] : [...watch.names]]),
      ),
    })),
  }
}

/** The sync state of one client, with the fields of the types that older tools know by name. */
export function syncOf({ node, watches }: Connection, { clusterId, version }: { clusterId: string; version: string }) {
  const of = (type: string): Watch | undefined => watches.get(`type.googleapis.com/${type}`)
  const named = Object.entries({
    cluster: of('envoy.config.cluster.v3.Cluster'),
    listener: of('envoy.config.listener.v3.Listener'),
    route: of('envoy.config.route.v3.RouteConfiguration'),
    endpoint: of('envoy.config.endpoint.v3.ClusterLoadAssignment'),
    extensionconfig: of('envoy.config.core.v3.TypedExtensionConfig'),
  }).flatMap(([name, watch]) => [
    [`${name}_sent`, watch?.nonceSent],
    [`${name}_acked`, watch?.nonceAcked],
  ])
  return {
    cluster_id: node.metadata.CLUSTER_ID ?? clusterId,
    proxy: node.proxyId,
    proxy_type: node.type,
    istio_version: node.metadata.ISTIO_VERSION ?? version,
    ...Object.fromEntries(named.filter(([, nonce]) => nonce !== undefined && nonce !== '')),
    resources: Object.fromEntries(
      [...watches].map(([type, { nonceSent, nonceAcked, lastSentAt, lastError }]) => [
        type,
        { sent: nonceSent, acked: nonceAcked, sentTime: lastSentAt?.toISOString(), lastError },
      ]),
    ),
  }
}

function resourcesOf(sources: readonly ResourceSource[]) {
  return Object.fromEntries(
    sources.map((source) => [
      source.typeUrl,
      [...source.list()].map(({ name, aliases, version, body }) => ({
        name,
        aliases,
        version,
        bytes: body.byteLength,
      })),
    ]),
  )
}
