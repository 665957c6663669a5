// The xDS types by which tools ask about the control plane itself: debug pages, connections, sync state.
import { create, type JsonObject, toBinary } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { status } from '@grpc/grpc-js'
import { csds } from '../proto/control-plane/index.ts'
import { core } from '../proto/index.ts'
import {
  type Connection,
  type EncodedResource,
  type OneShotType,
  StreamError,
  type Watch,
  type XdsClient,
} from '../xds/index.ts'
import type { DebugPages } from './debug.ts'
import { type DebugRights, type DebugView, viewOf } from './debug-access.ts'

export interface StatusTypesOptions extends DebugRights {
  readonly pages: DebugPages
  readonly connections: () => readonly Connection[]
  readonly requireAuthentication: boolean
}

const clientConfigType = 'type.googleapis.com/envoy.service.status.v3.ClientConfig'

export function statusTypes(options: StatusTypesOptions): readonly OneShotType[] {
  const synced = (typeUrl: string): OneShotType => ({
    typeUrl,
    isOfClients: true,
    answer: (client) => shownTo(client).map((connection) => clientConfig(connection)),
  })

  function callerOf({ identities }: XdsClient, page: string): DebugView {
    if (!options.requireAuthentication) return { kind: 'everything' }
    if (identities.length === 0) throw new StreamError(status.UNAUTHENTICATED, 'authentication required')
    return viewOf(identities, page, options)
  }

  /** Those of the caller's own namespaces, or all. */
  function shownTo(client: XdsClient): readonly Connection[] {
    const caller = callerOf(client, 'config_dump')
    const shown = options
      .connections()
      .filter(({ node }) => node.type === 'ztunnel' || node.metadata.PROXY_CONFIG !== undefined)
    if (caller.kind === 'everything') return shown
    return shown.filter(({ node }) => caller.kind === 'own' && caller.namespaces.includes(node.namespace))
  }

  function debug(client: XdsClient, names: readonly string[]): readonly EncodedResource[] {
    const [path] = names
    if (path === undefined || names.length !== 1) {
      throw new StreamError(status.INVALID_ARGUMENT, 'exactly one debug request is required')
    }
    const { pathname, searchParams } = new URL(`/${path.replace(/^\/+/, '')}`, 'http://local')
    const name = pathname.slice(1)
    const caller = callerOf(client, name)
    if (caller.kind === 'nothing') {
      const who = client.identities.join(' ')
      throw new StreamError(status.PERMISSION_DENIED, `the debug info is not available for current identity: ${who}`)
    }
    const page = Object.hasOwn(options.pages, name) ? options.pages[name] : undefined
    if (page === undefined) throw new StreamError(status.NOT_FOUND, `there is no debug page ${name}: ask for list`)
    return [textResource(path, page(searchParams, caller).body, 'istio.io/debug')]
  }

  /** A proxy that is not connected here, or that the caller may not see, has none. */
  function configDumps(client: XdsClient, names: readonly string[]): readonly EncodedResource[] {
    const caller = callerOf(client, 'config_dump')
    return names.flatMap((proxyID) => {
      const reply = options.pages.config_dump?.(new URLSearchParams({ proxyID }), caller)
      return reply?.status !== 200 ? [] : [textResource(proxyID, reply.body, 'istio.io/debug/config_dump')]
    })
  }

  return [
    { typeUrl: 'istio.io/debug', answer: debug },
    synced('istio.io/debug/syncz'),
    synced('istio.io/syncz'),
    { typeUrl: 'istio.io/debug/config_dump', answer: configDumps },
    {
      typeUrl: 'istio.io/connections',
      isOfClients: true,
      answer: (client) => shownTo(client).map((connection) => nodeResource(connection)),
    },
  ]
}

function textResource(name: string, text: string, bodyType: string): EncodedResource {
  return { name, aliases: [], version: '', body: new TextEncoder().encode(text), bodyType }
}

function nodeOf({ node }: Connection) {
  return create(core.NodeSchema, { id: node.id, metadata: JSON.parse(JSON.stringify(node.metadata)) as JsonObject })
}

function nodeResource(connection: Connection): EncodedResource {
  const body = toBinary(core.NodeSchema, nodeOf(connection))
  return {
    name: connection.id,
    aliases: [],
    version: '',
    body,
    bodyType: 'type.googleapis.com/envoy.config.core.v3.Node',
  }
}

function clientConfig(connection: Connection): EncodedResource {
  const config = create(csds.ClientConfigSchema, {
    node: nodeOf(connection),
    genericXdsConfigs: [...connection.watches].map(([typeUrl, watch]) => ({
      typeUrl,
      configStatus: statusOf(watch),
      ...(watch.lastSentAt === undefined ? {} : { lastUpdated: timestampFromDate(watch.lastSentAt) }),
      ...(watch.lastError === undefined ? {} : { errorState: { details: watch.lastError } }),
    })),
  })
  return {
    name: connection.node.id,
    aliases: [],
    version: '',
    body: toBinary(csds.ClientConfigSchema, config),
    bodyType: clientConfigType,
  }
}

function statusOf({ lastError, nonceSent, nonceAcked }: Watch): csds.ConfigStatus {
  if (lastError !== undefined) return csds.ConfigStatus.ERROR
  if (nonceSent === '') return csds.ConfigStatus.NOT_SENT
  return nonceSent === nonceAcked ? csds.ConfigStatus.SYNCED : csds.ConfigStatus.STALE
}
