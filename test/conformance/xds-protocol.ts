// The suite xds-protocol. Stream cases about the protocol run over real streams; those about Envoy resources wait for their generators.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { status } from '@grpc/grpc-js'
import { parse } from 'yaml'
import { mayDebug } from '../../src/istiod/index.ts'
import { authorizeNode, StreamError } from '../../src/xds/index.ts'
import type { ConformanceCase, ListCases } from './adapter.ts'
import { askForType, dumpConfig, type TypeCase } from './xds/control-plane-types.ts'
import { countPushes, type DebounceCase, type DebounceOptions } from './xds/debounce.ts'
import { createRegistry } from './xds/registry.ts'
import { runStreamCase, type StreamExpected, type StreamInput, serve, shortTypes } from './xds/run-stream-case.ts'
import { openStream, type Protocol } from './xds/stream.ts'

type Case = { readonly name: string } & Readonly<Record<string, unknown>>

interface UnitInput {
  readonly kind: string
  readonly cases?: readonly Case[]
  readonly [key: string]: unknown
}

interface UnitExpected {
  readonly results: Readonly<Record<string, unknown>>
}

const envoyContent = 'is about the content of Envoy resources, which no generator makes yet'
const secrets = 'is about Secrets over xDS, which no generator serves yet'
/** What the original's table is about has no counterpart here; the tests named show at least the same economy. */
const replaced = (by: string): string => `is about a push pipeline with a snapshot, which is not here; shown by ${by}`
const pushes = 'src/xds/server/pushes.property.test.ts'
const fairness = 'src/xds/server/fairness.property.test.ts'
const economy = 'src/istiod/economy.test.ts'

const pendingCases: Readonly<Record<string, string>> = {
  'nds-manual-address': 'is about name tables, which no generator makes yet',
  'sotw-endpoints-to-zero-and-back': envoyContent,
  'sotw-service-account-change': envoyContent,
  'sotw-unhealthy-endpoints-hidden': envoyContent,
  'sotw-unrelated-service-change-scoped': envoyContent,
}

const pendingKinds: Readonly<Record<string, string>> = {
  sds: secrets,
  typeDecisions: replaced(`${economy} (a change reaches the types that are computed from it and no other)`),
  proxyNeedsPush: replaced(
    `${pushes} (each client gets what changed of what it watches in one message, and none when nothing of it changed)`,
  ),
  pushQueue: replaced(
    `${fairness} (one message on its way, what waits is one message a type, no type and no client keeps back another) and src/xds/slow-clients.test.ts`,
  ),
  pushMerge: replaced(
    'src/xds/server/push-lane.test.ts (changes within the quiet time are one wave, those of one resource one change with the keys of both; none waits beyond the maximum)',
  ),
  xdsCache: replaced(
    'src/collections/graph.property.test.ts (what was computed is computed again exactly when something it read changed)',
  ),
  partialEds: replaced(`${economy} (one pod is one workload; endpoints never push their service)`),
  configUpdateNeedsPush: replaced(`${economy} (labels, annotations and versions that nothing reads push nothing)`),
}

export const cases: ListCases = (suiteDir) =>
  readdirSync(suiteDir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => caseOf(suiteDir, name))

function caseOf(suiteDir: string, name: string): ConformanceCase {
  const read = (file: string): unknown => parse(readFileSync(join(suiteDir, name, file), 'utf8'))
  const input = read('input.yaml') as StreamInput | UnitInput
  const pending = pendingCases[name] ?? ('kind' in input ? pendingKinds[input.kind] : undefined)
  const run = async (): Promise<void> => {
    if ('kind' in input) await runUnitCase(input, read('expected.yaml') as UnitExpected)
    else await runStreamCase(input, read('expected.yaml') as StreamExpected)
  }
  return { name, run, ...(pending === undefined ? {} : { pending }) }
}

async function runUnitCase(input: UnitInput, { results }: UnitExpected): Promise<void> {
  for (const one of input.cases ?? []) {
    assertResult(await evaluate(input, one), results[one.name], one.name)
  }
}

/** Fields that a result does not speak of may be anything. */
function assertResult(actual: unknown, wanted: unknown, name: string): void {
  if (typeof wanted !== 'object' || wanted === null) assert.deepEqual(actual, wanted, name)
  else assert.partialDeepStrictEqual(actual, wanted, name)
}

async function evaluate(input: UnitInput, one: Case): Promise<unknown> {
  switch (input.kind) {
    case 'nodeErrors':
      return { grpcCode: await codeOfNode(input.protocol as Protocol, one) }
    case 'identityCheck':
      return identityCheck(one)
    case 'debugAccess':
      return mayDebug([String(one.identity)], String(one.path).replace(/^\/debug\//, ''), {
        systemNamespace: String(input.systemNamespace),
        allowedNamespaces: input.allowedNamespaces as string[],
      })
    case 'specialTypes':
      return askForType(String(input.systemNamespace), one as unknown as TypeCase)
    case 'configDump':
      return dumpConfig(input.connectedProxies as string[], String(one.proxyID))
    case 'debounce':
      return countPushes(input.options as DebounceOptions, one as unknown as DebounceCase)
    default:
      throw new Error(`no evaluation for cases of kind ${input.kind}`)
  }
}

function identityCheck(one: Case): string {
  const node = { namespace: String(one.namespace), metadata: { SERVICE_ACCOUNT: one.serviceAccount } }
  try {
    authorizeNode(node, one.identities as string[])
    return 'allow'
  } catch (error) {
    if (error instanceof StreamError && error.code === status.PERMISSION_DENIED) return 'PermissionDenied'
    throw error
  }
}

async function codeOfNode(protocol: Protocol, one: Case): Promise<string> {
  const server = await serve(createRegistry([], []))
  const answered = Promise.withResolvers<'OK'>()
  const node = { id: String(one.nodeId), metadata: (one.metadata ?? {}) as Record<string, unknown> }
  const stream = await openStream({ port: server.port, protocol, node, name: 'first' }, () => answered.resolve('OK'))
  try {
    stream.send({ typeUrl: shortTypes.CDS ?? '' })
    const ended = stream.ended.then((code) => (code === status.INVALID_ARGUMENT ? 'InvalidArgument' : `code ${code}`))
    return await Promise.race([answered.promise, ended])
  } finally {
    stream.close()
    server.close()
  }
}
