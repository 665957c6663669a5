// The debug pages of the control plane: each a function from a query and what the caller may see to a value.
import type { IncomingMessage } from 'node:http'
import type { Authenticator } from '../ca/index.ts'
import { type Graph, pictureOf } from '../collections/index.ts'
import type { ProblemLog } from '../config/index.ts'
import { problemText } from '../config/index.ts'
import {
  type AmbientIndex,
  type AmbientInputs,
  placeText,
  viewAmbient,
  viewEndpoints,
} from '../discovery/ambient/index.ts'
import type { Connection, ResourceSource } from '../xds/index.ts'
import { type DebugRights, type DebugView, isFromHere, viewOfRequest } from './debug-access.ts'
import { jsonReply, type Reply, type Route, textReply } from './http-server.ts'
import type { OtherKind } from './other-configuration.ts'
import { type Profiler, profileNames } from './profiling.ts'
import type { RemoteClusterStatus } from './remote-clusters.ts'
import { clientsOf, syncOf } from './sync-status.ts'

export interface DebugSources {
  readonly connections: () => readonly Connection[]
  readonly graph: Graph
  readonly inputs: AmbientInputs
  readonly others: readonly OtherKind[]
  readonly index: Pick<AmbientIndex, 'addresses' | 'authorizations' | 'gateways' | 'unusedGateways'>
  readonly sources: readonly ResourceSource[]
  readonly meshConfig: () => unknown
  readonly meshNetworks: () => unknown
  readonly remoteClusters: () => readonly RemoteClusterStatus[]
  readonly revision: () => { readonly revision: string; readonly tags: readonly string[] }
  readonly problems: ProblemLog
  readonly clusterId: string
  readonly version: string
  /** Sends every client again what it watches. */
  readonly pushAll: () => void
  /** Ends the stream of a client; undefined where that may not be asked for. */
  readonly disconnect: ((connection: Connection) => void) | undefined
}

export interface DebugOptions extends DebugRights {
  readonly sources: DebugSources
  /** Undefined: no profiles are taken. */
  readonly profiler: Profiler | undefined
  readonly authenticators: readonly Authenticator[]
  readonly requireAuthentication: boolean
}

/** A page: `caller` sees everything or what is its own. */
type Page = (query: URLSearchParams, caller: DebugView) => Reply

export type DebugPages = Readonly<Record<string, Page>>

/** Callers whose proof is looked at together: each may be a question to an API server. */
const mostAsking = 50

const missingProxy = 'You must provide a proxyID in the query string\n'
const unknownProxy = 'Proxy not connected to this Pilot instance. It may be connected to another instance.\n'

export function debugPages(sources: DebugSources): DebugPages {
  const { connections, graph, index } = sources
  const page =
    (value: (query: URLSearchParams) => unknown): Page =>
    (query) =>
      jsonReply(value(query), query.has('pretty'))
  const pages: DebugPages = {
    list: page(() => Object.keys(pages).sort()),
    adsz: page((query) => {
      if (query.get('push') === 'true') sources.pushAll()
      return clientsOf(connections())
    }),
    connections: page(() => clientsOf(connections())),
    syncz: page((query) => {
      const namespace = query.get('namespace')
      return connections()
        .filter(({ node }) => namespace === null || node.namespace === namespace)
        .map((connection) => syncOf(connection, sources))
    }),
    config_dump: (query, caller) => configDump(sources, query, caller),
    krtz: (query) => collectionsOf(graph, query),
    collections: (query) => collectionsOf(graph, query),
    resourcesz: page(() => resourcesOf(sources.sources)),
    ambientz: page(() => viewAmbient(index)),
    authorizationz: page(() => viewAmbient(index).policies),
    endpointz: page(() => viewEndpoints(index)),
    registryz: page(() => viewAmbient(index).services),
    configz: page(() => configurationOf(sources)),
    problemsz: page(() =>
      sources.problems.list().map(({ resource, object, problems, where, served }) => ({
        kind: resource.kind,
        namespace: object.metadata.namespace,
        name: object.metadata.name,
        where,
        served,
        problems: problems.map(problemText),
      })),
    ),
    clusterz: page(() => [{ id: sources.clusterId, syncStatus: 'synced' }, ...sources.remoteClusters()]),
    networkz: page(() => networksOf(sources)),
    mesh: page(() => sources.meshConfig()),
    revisionz: page(() => sources.revision()),
    ...(sources.disconnect === undefined
      ? {}
      : {
          force_disconnect: (query, caller) => forceDisconnect(sources, query, caller),
        }),
  }
  return pages
}

/** The route of a path below /debug/, for those who may see it. */
export function debugRoutes(options: DebugOptions): (path: string) => Route | undefined {
  const { sources, profiler } = options
  const pages = debugPages(sources)
  let asking = 0
  const find = (path: string): { readonly name: string; readonly answer: Answer } | undefined => {
    const name = path === '/debug' || path === '/debug/' ? 'list' : path.replace(/^\/debug\//, '')
    const page = Object.hasOwn(pages, name) ? pages[name] : undefined
    if (page !== undefined) return { name, answer: (_, query, caller) => page(query, caller) }
    if (profiler === undefined || !name.startsWith('pprof')) return undefined
    if (name === 'pprof' || name === 'pprof/') return { name, answer: () => jsonReply(profileNames) }
    const profile = name.slice('pprof/'.length)
    if (!profileNames.includes(profile)) return undefined
    return { name, answer: (request, query) => profiler.take(profile, request, query) ?? textReply(404, 'not found\n') }
  }
  return (path) => {
    const found = find(path)
    if (found === undefined) return undefined
    return async (request: IncomingMessage, url: URL) => {
      if (asking >= mostAsking && !isFromHere(request))
        return textReply(503, 'too many callers are being authenticated\n')
      asking += 1
      const caller = await viewOfRequest(request, found.name, options).finally(() => {
        asking -= 1
      })
      if (caller.kind !== 'nothing') return found.answer(request, url.searchParams, caller)
      return textReply(caller.status, caller.status === 401 ? 'authentication required\n' : 'forbidden\n')
    }
  }
}

/** The collections one by one, or as a picture of which reads which. */
function collectionsOf(graph: Graph, query: URLSearchParams): Reply {
  const collections = graph.describe()
  return query.has('picture')
    ? textReply(200, `${pictureOf(collections)}\n`)
    : jsonReply(collections, query.has('pretty'))
}

/** Mesh networks as they are written, and the gateways that node proxies use. */
function networksOf({ meshNetworks, index }: DebugSources) {
  return {
    meshNetworks: meshNetworks(),
    gateways: [...index.gateways.entries()].map(([, gateway]) => ({ ...gateway, place: placeText(gateway) })),
    unused: [...index.unusedGateways.entries()].map(([, unused]) => unused),
  }
}

type Answer = (request: IncomingMessage, query: URLSearchParams, caller: DebugView) => Reply | Promise<Reply>

/**
 * The clients of the id that a query names, as far as the caller may see them; else the reply that says why not. Clients say their id
 * themselves, so that there may be several.
 */
function clientsNamed(
  { connections }: DebugSources,
  query: URLSearchParams,
  caller: DebugView,
): readonly Connection[] | Reply {
  const proxyId = query.get('proxyID') ?? ''
  if (proxyId === '') return textReply(400, missingProxy)
  const isSeen = ({ node }: Connection): boolean =>
    caller.kind === 'everything' || (caller.kind === 'own' && caller.namespaces.includes(node.namespace))
  const seen = connections().filter((connection) => connection.node.proxyId === proxyId && isSeen(connection))
  return seen.length > 0 ? seen : textReply(404, unknownProxy)
}

function forceDisconnect(sources: DebugSources, query: URLSearchParams, caller: DebugView): Reply {
  const clients = clientsNamed(sources, query, caller)
  if ('status' in clients) return clients
  for (const client of clients) sources.disconnect?.(client)
  return textReply(200, 'OK\n')
}

/** What the clients of one id have been given, each with who it has proved to be. */
function configDump(of: DebugSources, query: URLSearchParams, caller: DebugView): Reply {
  const clients = clientsNamed(of, query, caller)
  if ('status' in clients) return clients
  const dumps = clients.map(({ id, peer, identities, watches }) => ({
    connection: id,
    address: peer,
    identities,
    configs: configsOf(watches, of.sources),
  }))
  return jsonReply({ proxy: query.get('proxyID'), clients: dumps }, query.has('pretty'))
}

function configsOf(watches: Connection['watches'], sources: readonly ResourceSource[]) {
  return [...watches].map(([typeUrl, watch]) => {
    const source = sources.find((one) => one.typeUrl === typeUrl)
    const given = watch.wildcard
      ? [...(source?.list() ?? [])]
      : [...watch.names].flatMap((name) => source?.get(name) ?? [])
    return {
      typeUrl,
      subscribed: watch.wildcard ? ['*'] : [...watch.names],
      resources: given.map(({ name, version, body }) => ({
        name,
        version,
        body: Buffer.from(body).toString('base64'),
      })),
    }
  })
}

/** The objects people wrote, with the cluster they are from. */
function configurationOf({ inputs: { collections }, others, clusterId }: DebugSources) {
  const { serviceEntries, workloadEntries, authorizationPolicies, peerAuthentications, gateways } = collections
  return [
    ...[serviceEntries, workloadEntries, authorizationPolicies, peerAuthentications, gateways].flatMap((collection) =>
      [...collection.entries()].map(([, { cluster, object }]) => ({ cluster, ...object })),
    ),
    ...others.flatMap(({ collection }) =>
      [...collection.entries()].map(([, object]) => ({ cluster: clusterId, ...object })),
    ),
  ]
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
