// A delta-xDS conversation with a running server over the ambient index, step by step.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { create, fromBinary, type JsonObject, toBinary } from '@bufbuild/protobuf'
import { Client, type ClientDuplexStream, credentials, Server, ServerCredentials } from '@grpc/grpc-js'
import type { KubeObject } from '../../../src/api/index.ts'
import { createMetricsRegistry, silentLogging } from '../../../src/observability/index.ts'
import { core, discovery } from '../../../src/proto/index.ts'
import { createXdsServer } from '../../../src/xds/index.ts'
import { createMesh, type Mesh } from './mesh.ts'

interface Step {
  readonly connect?: { readonly id: string; readonly metadata?: JsonObject }
  readonly send?: {
    readonly subscribe?: readonly string[]
    readonly unsubscribe?: readonly string[]
    readonly initialResourceVersions?: Readonly<Record<string, string | { readonly $saved: string }>>
  }
  readonly ack?: boolean
  readonly apply?: readonly KubeObject[]
  readonly delete?: readonly string[]
  readonly expect?: {
    readonly resources: readonly string[]
    readonly removed: readonly string[]
    readonly aliases?: Readonly<Record<string, readonly string[]>>
    readonly everyResourceHasVersion?: boolean
    readonly saveVersionsAs?: string
  }
  readonly expectNoResponse?: boolean
  readonly disconnect?: boolean
}

export interface Conversation {
  readonly settings: { readonly clusterId: string; readonly domainSuffix: string; readonly rootNamespace: string }
  readonly typeUrl: string
  readonly steps: readonly Step[]
}

const quietTimes = { afterMs: 5, maxMs: 50 }
const quietMs = 3 * quietTimes.afterMs + 20
const longestWaitMs = 5_000

export async function runConversation({ settings, typeUrl, steps }: Conversation): Promise<void> {
  const { clusterId, domainSuffix, rootNamespace } = settings
  const mesh = createMesh({ clusterId, domainSuffix, systemNamespace: rootNamespace }, {}, { rootNamespace })
  const serving = await serve(mesh)
  const saved = new Map<string, Map<string, string>>()
  let peer: Peer | undefined
  try {
    for (const [at, step] of steps.entries()) {
      const context = `step ${at + 1}`
      if (step.connect !== undefined) peer = connect(serving.port, typeUrl, step.connect)
      if (step.send !== undefined) peer?.send(step.send, saved)
      if (step.apply !== undefined) mesh.change({ [clusterId]: step.apply }, {})
      if (step.delete !== undefined) mesh.change({}, { [clusterId]: step.delete })
      if (step.disconnect === true) await peer?.close()
      if (step.expect !== undefined) {
        await check(peer, step.expect, saved, steps[at - 1]?.send !== undefined, context)
      }
      if (step.expectNoResponse === true) {
        await pause(quietMs)
        assert.deepEqual(peer?.take(), [], `${context}: no response`)
      }
    }
  } finally {
    await peer?.close()
    serving.close()
  }
}

async function serve({ index }: Mesh): Promise<{ port: number; close(): void }> {
  const xds = createXdsServer({
    types: [
      { source: index.authorizations, isWildcard: true, removals: 'last' },
      { source: index.addresses, isWildcard: true },
      { source: index.workloads, isWildcard: true },
    ],
    authenticate: () => Promise.resolve([]),
    checkNodeIdentity: false,
    controlPlane: 'conformance',
    version: 'conformance',
    quietTimes,
    metrics: createMetricsRegistry(),
    log: silentLogging().scope('xds'),
  })
  const server = new Server()
  xds.addTo(server)
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    )
  })
  return {
    port,
    close: () => {
      xds.close()
      server.forceShutdown()
    },
  }
}

interface Peer {
  send(request: NonNullable<Step['send']>, saved: ReadonlyMap<string, ReadonlyMap<string, string>>): void
  /** The responses since the last call. */
  take(): discovery.DeltaDiscoveryResponse[]
  /** Resolves at the next response, or after the time. */
  nextResponse(timeoutMs: number): Promise<boolean>
  close(): Promise<void>
}

function connect(port: number, typeUrl: string, node: NonNullable<Step['connect']>): Peer {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
  const call: ClientDuplexStream<discovery.DeltaDiscoveryRequest, discovery.DeltaDiscoveryResponse> =
    client.makeBidiStreamRequest(
      '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
      (request) => Buffer.from(toBinary(discovery.DeltaDiscoveryRequestSchema, request)),
      (bytes) => fromBinary(discovery.DeltaDiscoveryResponseSchema, bytes),
    )
  let responses: discovery.DeltaDiscoveryResponse[] = []
  let isFirst = true
  const ended = Promise.withResolvers<void>()
  call.on('error', () => ended.resolve())
  call.on('end', () => ended.resolve())
  call.on('data', (response: discovery.DeltaDiscoveryResponse) => {
    responses.push(response)
    call.write(create(discovery.DeltaDiscoveryRequestSchema, { typeUrl, responseNonce: response.nonce }))
    call.emit('response')
  })
  return {
    send: ({ subscribe = [], unsubscribe = [], initialResourceVersions = {} }, saved) => {
      const versions = Object.entries(initialResourceVersions).flatMap(([name, value]): [string, string][] => {
        if (name === '$saved') return [...(saved.get(String(value)) ?? [])]
        return [[name, typeof value === 'string' ? value : (saved.get(value.$saved)?.get(name) ?? '')]]
      })
      const request = create(discovery.DeltaDiscoveryRequestSchema, {
        typeUrl,
        resourceNamesSubscribe: [...subscribe],
        resourceNamesUnsubscribe: [...unsubscribe],
        initialResourceVersions: Object.fromEntries(versions),
      })
      if (isFirst) request.node = create(core.NodeSchema, { id: node.id, metadata: node.metadata ?? {} })
      isFirst = false
      call.write(request)
    },
    take: () => responses.splice(0),
    nextResponse: async (timeoutMs) => {
      try {
        await once(call, 'response', { signal: AbortSignal.timeout(timeoutMs) })
        return true
      } catch {
        return false
      }
    },
    close: async () => {
      responses = []
      call.cancel()
      await ended.promise
      client.close()
    },
  }
}

async function check(
  peer: Peer | undefined,
  expected: NonNullable<Step['expect']>,
  saved: Map<string, Map<string, string>>,
  answersRequest: boolean,
  context: string,
): Promise<void> {
  assert.ok(peer, `${context}: no stream is open`)
  const responses = peer.take()
  // What is expected may come in several responses, and late on a busy machine; what is not expected has the quiet time to show.
  const isComplete = (): boolean => {
    const names = new Set(responses.flatMap((response) => response.resources.map(({ name }) => name)))
    const gone = new Set(responses.flatMap((response) => response.removedResources))
    return (
      responses.length > 0 &&
      expected.resources.every((name) => names.has(name)) &&
      expected.removed.every((name) => gone.has(name))
    )
  }
  while (!isComplete()) {
    if (!(await peer.nextResponse(longestWaitMs))) break
    responses.push(...peer.take())
  }
  assert.ok(responses.length > 0, `${context}: a response`)
  while (await peer.nextResponse(quietMs));
  responses.push(...peer.take())
  const resources = responses.flatMap((response) => response.resources)
  const names = [...new Set(resources.map(({ name }) => name))].sort()
  assert.deepEqual(names, [...expected.resources].sort(), `${context}: resources`)
  const removed = responses.flatMap((response) => response.removedResources)
  assert.deepEqual([...new Set(removed)].sort(), [...expected.removed].sort(), `${context}: removed`)
  if (answersRequest) assert.equal(responses.length, 1, `${context}: one response to the request`)
  for (const [name, aliases] of Object.entries(expected.aliases ?? {})) {
    const found = resources.find((resource) => resource.name === name)?.aliases ?? []
    assert.deepEqual([...found].sort(), [...aliases].sort(), `${context}: aliases of ${name}`)
  }
  if (expected.everyResourceHasVersion === true) {
    for (const { name, version } of resources) assert.notEqual(version, '', `${context}: version of ${name}`)
  }
  const { saveVersionsAs } = expected
  if (saveVersionsAs !== undefined)
    saved.set(saveVersionsAs, new Map(resources.map(({ name, version }) => [name, version])))
}
