// Plays the steps of a stream case against a running server and compares what arrives.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import { syncOf } from '../../../src/istiod/index.ts'
import { createMetricsRegistry, silentLogging } from '../../../src/observability/index.ts'
import { createXdsServer, type XdsServer, type XdsServerOptions } from '../../../src/xds/index.ts'
import { createRegistry, type Pod, type Registry, type ServerChange, type Service } from './registry.ts'
import { type CaseNode, type CaseStream, openStream, type Protocol, type Received, type SendFields } from './stream.ts'

export interface StreamInput {
  readonly protocol: Protocol
  readonly server?: { readonly services?: readonly Service[]; readonly pods?: readonly Pod[] }
  readonly client: { readonly node: CaseNode }
  readonly steps: readonly StepInput[]
}

interface StepInput {
  readonly send?: SendFields & { readonly ack?: boolean }
  readonly server?: ServerChange
  readonly reconnect?: boolean
  readonly connect?: string
  readonly close?: string
  readonly stream?: string
  readonly query?: { readonly syncz?: boolean }
}

interface ExpectedMessage {
  readonly type: string
  readonly stream?: string
  readonly names?: readonly string[]
  readonly contains?: readonly string[]
  readonly absent?: readonly string[]
  readonly removed?: readonly string[]
  readonly endpoints?: Readonly<Record<string, readonly string[]>>
  readonly nonce?: 'new'
  readonly version?: 'new' | 'greater'
  readonly resourceVersions?: 'non-empty'
}

interface SyncExpectation {
  readonly syncz: Readonly<Record<string, { sent?: string; acked?: string; lastError?: string }>>
}

export interface StreamExpected {
  readonly steps: readonly (
    | readonly ExpectedMessage[]
    | { readonly ordered: readonly ExpectedMessage[] }
    | SyncExpectation
  )[]
}

export const shortTypes: Readonly<Record<string, string>> = {
  CDS: 'type.googleapis.com/envoy.config.cluster.v3.Cluster',
  EDS: 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
  LDS: 'type.googleapis.com/envoy.config.listener.v3.Listener',
  RDS: 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration',
  WDS: 'type.googleapis.com/istio.workload.Address',
  WADS: 'type.googleapis.com/istio.security.Authorization',
}

const quietMs = 120
/** How late an expected message may come on a busy machine. */
const longestWaitMs = 10_000

export interface RunningServer {
  readonly xds: XdsServer
  readonly port: number
  close(): void
}

/** Serves the registry without TLS, as the cases speak of the protocol alone. */
export async function serve(registry: Registry, overrides: Partial<XdsServerOptions> = {}): Promise<RunningServer> {
  const xds = createXdsServer({
    types: registry.types,
    authenticate: async () => [],
    checkNodeIdentity: false,
    controlPlane: 'conformance',
    version: 'conformance',
    quietTimes: { afterMs: 5, maxMs: 20 },
    metrics: createMetricsRegistry(),
    log: silentLogging().scope('xds'),
    ...overrides,
  })
  const server = new Server()
  xds.addTo(server)
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, at) =>
      error === null ? resolve(at) : reject(error),
    )
  })
  return {
    xds,
    port,
    close() {
      xds.close()
      server.forceShutdown()
    },
  }
}

export async function runStreamCase(input: StreamInput, expected: StreamExpected): Promise<void> {
  const registry = createRegistry(input.server?.services ?? [], input.server?.pods ?? [])
  const server = await serve(registry)
  const player = createPlayer(input, server, registry)
  try {
    for (const [index, step] of input.steps.entries()) {
      const wanted = expected.steps[index]
      const where = `step ${index + 1} ${JSON.stringify(step)}`
      if (wanted !== undefined && 'syncz' in wanted) player.compareSync(wanted, where)
      else compare(await player.play(step, countOf(wanted ?? [])), wanted ?? [], player, where)
    }
  } finally {
    player.close()
    server.close()
  }
}

function createPlayer(input: StreamInput, server: RunningServer, registry: Registry) {
  const streams = new Map<string, CaseStream>()
  const history: Received[] = []
  const resourceVersions = new Map<string, string>()
  let current: Received[] = []
  let previous: Received[] = []
  let batch: Received[] = []
  let lastAt = 0
  let acknowledging: (SendFields & { readonly stream: string }) | undefined

  function receive(message: Received): void {
    lastAt = performance.now()
    batch.push(message)
    current.push(message)
    for (const [name, version] of Object.entries(message.resourceVersions)) resourceVersions.set(name, version)
    if (acknowledging === undefined) return
    const { typeUrl, resourceNames = [] } = acknowledging
    if (message.type !== typeUrl) return
    const { nonce: responseNonce, version: versionInfo } = message
    streams.get(acknowledging.stream)?.send({ typeUrl, resourceNames, responseNonce, versionInfo })
  }

  async function open(name: string): Promise<CaseStream> {
    const stream = await openStream(
      { port: server.port, protocol: input.protocol, node: input.client.node, name },
      receive,
    )
    streams.set(name, stream)
    return stream
  }

  function fill(text: string): string {
    const match = /^\$(nonce|version|old|oldVersion|resourceVersion)\(([^,)]+)(?:,(\d+))?\)$/.exec(text)
    if (match === null) return text
    const [, what = '', of = '', nth] = match
    if (what === 'resourceVersion') return resourceVersions.get(of) ?? text
    const messages = (what.startsWith('old') ? previous : current).filter(({ type }) => type === shortTypes[of])
    const message = nth === undefined ? messages.at(-1) : messages[Number(nth) - 1]
    return (what === 'nonce' || what === 'old' ? message?.nonce : message?.version) ?? text
  }

  /** Waits for as many messages as are expected, then for none to come any more. */
  async function quiet(expectedMessages: number): Promise<void> {
    const startedAt = performance.now()
    while (batch.length < expectedMessages && performance.now() - startedAt < longestWaitMs) await sleep(5)
    lastAt = performance.now()
    while (performance.now() - lastAt < quietMs) await sleep(quietMs - (performance.now() - lastAt) + 1)
  }

  return {
    history,
    fill,
    async play(step: StepInput, expectedMessages: number): Promise<readonly Received[]> {
      batch = []
      acknowledging = undefined
      const name = step.stream ?? 'first'
      if (step.reconnect === true) {
        streams.get('first')?.close()
        previous = current
        current = []
        await open('first')
      }
      if (step.connect !== undefined) await open(step.connect)
      if (step.close !== undefined) streams.get(step.close)?.close()
      if (step.server !== undefined) registry.change(step.server)
      if (step.send !== undefined) {
        const { ack, ...fields } = step.send
        const filled = fillAll(fields, fill)
        if (ack === true) acknowledging = { ...filled, stream: name }
        const stream = streams.get(name) ?? (await open(name))
        stream.send(filled)
      }
      await quiet(expectedMessages)
      const arrived = batch
      return arrived
    },
    compareSync({ syncz }: SyncExpectation, where: string): void {
      const [connection] = server.xds.connections()
      assert.ok(connection, `${where}: no client is connected`)
      const { resources } = syncOf(connection, { clusterId: 'Kubernetes', version: 'test' })
      for (const [type, wanted] of Object.entries(syncz)) {
        const state = (resources as Record<string, Record<string, string | undefined>>)[shortTypes[type] ?? type]
        for (const [field, value] of Object.entries(wanted)) {
          const actual = state?.[field] ?? ''
          if (value === 'set') assert.notEqual(actual, '', `${where}: ${type}.${field}`)
          else assert.equal(actual, value === 'empty' ? '' : fill(value), `${where}: ${type}.${field}`)
        }
      }
    },
    close(): void {
      for (const stream of streams.values()) stream.close()
    },
  }
}

function fillAll<T>(value: T, fill: (text: string) => string): T {
  if (typeof value === 'string') return fill(value) as T
  if (Array.isArray(value)) return value.map((item) => fillAll(item, fill)) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillAll(item, fill)])) as T
}

function countOf(wanted: readonly ExpectedMessage[] | { readonly ordered: readonly ExpectedMessage[] }): number {
  return 'ordered' in wanted ? wanted.ordered.length : wanted.length
}

function compare(
  arrived: readonly Received[],
  wanted: readonly ExpectedMessage[] | { readonly ordered: readonly ExpectedMessage[] },
  player: { readonly history: Received[] },
  where: string,
): void {
  const ordered = 'ordered' in wanted
  const expected = ordered ? wanted.ordered : (wanted as readonly ExpectedMessage[])
  assert.deepEqual(
    sorted(
      arrived.map(({ type, stream }) => `${stream} ${type}`),
      ordered,
    ),
    sorted(
      expected.map(({ type, stream = 'first' }) => `${stream} ${type}`),
      ordered,
    ),
    where,
  )
  const rest = [...arrived]
  for (const message of expected) {
    const at = rest.findIndex(({ type, stream }) => type === message.type && stream === (message.stream ?? 'first'))
    const [received] = rest.splice(at, 1)
    if (received === undefined) throw new assert.AssertionError({ message: `${where}: ${message.type} is missing` })
    compareMessage(received, message, player.history, `${where}: ${message.type}`)
    player.history.push(received)
  }
}

function compareMessage(
  received: Received,
  wanted: ExpectedMessage,
  history: readonly Received[],
  where: string,
): void {
  const names = received.names.toSorted()
  if (wanted.names !== undefined) assert.deepEqual(names, wanted.names.toSorted(), `${where}: names`)
  for (const name of wanted.contains ?? []) assert.ok(names.includes(name), `${where}: ${name} in ${names.join()}`)
  for (const name of wanted.absent ?? []) assert.ok(!names.includes(name), `${where}: ${name} not in ${names.join()}`)
  if (wanted.removed !== undefined) assert.deepEqual(received.removed, wanted.removed, `${where}: removed`)
  for (const [name, endpoints] of Object.entries(wanted.endpoints ?? {})) {
    assert.deepEqual(
      (received.endpoints[name] ?? []).toSorted(),
      endpoints.toSorted(),
      `${where}: endpoints of ${name}`,
    )
  }
  if (wanted.nonce === 'new') {
    assert.ok(received.nonce !== '' && !history.some(({ nonce }) => nonce === received.nonce), `${where}: a new nonce`)
  }
  const before = history.filter(({ type }) => type === received.type).map(({ version }) => version)
  if (wanted.version === 'new') assert.ok(!before.includes(received.version), `${where}: a new version`)
  if (wanted.version === 'greater') {
    for (const version of before)
      assert.ok(isGreater(received.version, version), `${where}: ${received.version} > ${version}`)
  }
  if (wanted.resourceVersions === 'non-empty') {
    for (const [name, version] of Object.entries(received.resourceVersions))
      assert.notEqual(version, '', `${where}: ${name}`)
  }
}

/** A version is a time and a count. */
function isGreater(a: string, b: string): boolean {
  const [timeA = '', countA] = a.split('/')
  const [timeB = '', countB] = b.split('/')
  return timeA === timeB ? Number(countA) > Number(countB) : timeA > timeB
}

function sorted(texts: readonly string[], keepOrder: boolean): readonly string[] {
  return keepOrder ? texts : texts.toSorted()
}
