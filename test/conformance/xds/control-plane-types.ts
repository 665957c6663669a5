// Cases about the types by which control planes and tools ask: what a stream with an identity is answered.
import { status } from '@grpc/grpc-js'
import { createGraph } from '../../../src/collections/index.ts'
import { defaultMeshConfig } from '../../../src/config/index.ts'
import {
  createAmbientIndex,
  createAmbientInputs,
  defaultAmbientSettings,
} from '../../../src/discovery/ambient/index.ts'
import { debugPages, exportedTypes, statusTypes } from '../../../src/istiod/index.ts'
import { debugSourcesOf } from '../../../src/istiod/testing.ts'
import type { Connection, XdsServerOptions } from '../../../src/xds/index.ts'
import { type RunningServer, serve } from './run-stream-case.ts'
import { openStream } from './stream.ts'

export interface TypeCase {
  readonly identity?: string | null
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly typeUrl: string
  readonly resourceNames?: readonly string[]
}

const settings = { clusterId: 'Kubernetes', restrictsExport: true }

function controlPlane(systemNamespace: string, connections: () => readonly Connection[]) {
  const graph = createGraph({
    report: (report) => {
      throw new Error(`${report.kind} in ${report.collection}`)
    },
  })
  const inputs = createAmbientInputs(graph)
  const index = createAmbientIndex({ inputs, settings: defaultAmbientSettings })
  inputs.meshConfig.set({})
  inputs.feed('Kubernetes', 'serviceEntries').set({
    apiVersion: 'networking.istio.io/v1',
    kind: 'ServiceEntry',
    metadata: { namespace: 'default', name: 'external' },
    spec: { hosts: ['external.example'] },
  })
  inputs.markSynced()
  const current = defaultMeshConfig(systemNamespace)
  const mesh = { current, subscribe: () => () => {} }
  const types = exportedTypes({ inputs, index, others: [], settings, mesh })
  const sources = types.map(({ source }) => source)
  const pages = debugPages(debugSourcesOf({ connections, graph, inputs, index, sources, version: 'conformance' }))
  return { types, pages }
}

async function start(systemNamespace: string, authenticate: XdsServerOptions['authenticate']) {
  let server: RunningServer | undefined
  const connections = (): readonly Connection[] => server?.xds.connections() ?? []
  const { types, pages } = controlPlane(systemNamespace, connections)
  const oneShots = statusTypes({
    pages,
    connections,
    systemNamespace,
    allowedNamespaces: [],
    requireAuthentication: true,
  })
  server = await serve({ types, change: () => {} }, { oneShots, authenticate })
  return { server, pages }
}

/** The name of the gRPC status the request is answered with; OK for a response. */
export async function askForType(systemNamespace: string, one: TypeCase): Promise<string> {
  const { identity } = one
  const { server } = await start(systemNamespace, async () => (typeof identity === 'string' ? [identity] : undefined))
  const answered = Promise.withResolvers<'OK'>()
  const node = { id: 'sidecar~1.1.1.1~tool.~local', metadata: one.metadata ?? {} }
  const stream = await openStream({ port: server.port, protocol: 'sotw', node, name: 'first' }, () =>
    answered.resolve('OK'),
  )
  try {
    stream.send({ typeUrl: one.typeUrl, resourceNames: one.resourceNames ?? [] })
    return await Promise.race([answered.promise, stream.ended.then(nameOf)])
  } finally {
    stream.close()
    server.close()
  }
}

/** The HTTP status of the dump of a proxy's configuration. */
export async function dumpConfig(connectedProxies: readonly string[], proxyId: string): Promise<number> {
  const { server, pages } = await start('istio-system', async () => ['spiffe://td/ns/istio-system/sa/istiod'])
  const streams = await Promise.all(
    connectedProxies.map(async (id) => {
      const answered = Promise.withResolvers<void>()
      const node = { id: `sidecar~1.1.1.1~${id}~local` }
      const stream = await openStream({ port: server.port, protocol: 'sotw', node, name: id }, () => answered.resolve())
      stream.send({ typeUrl: 'networking.istio.io/v1/ServiceEntry' })
      await answered.promise
      return stream
    }),
  )
  try {
    return pages.config_dump?.(new URLSearchParams({ proxyID: proxyId }), { kind: 'everything' }).status ?? 0
  } finally {
    for (const stream of streams) stream.close()
    server.close()
  }
}

function nameOf(code: number): string {
  const words = status[code]?.toLowerCase().split('_') ?? [`code ${code}`]
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}
