// Objects in, resources of the Workload API out, step by step.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonValue } from '@bufbuild/protobuf'
import { objectName, type ServiceEntry } from '../../src/api/index.ts'
import { AddressAllocator, type AmbientMeshConfig, type HostAddress } from '../../src/discovery/index.ts'
import type { EncodedResource, ResourceSource } from '../../src/xds/index.ts'
import type { ConformanceCase, ListCases } from './adapter.ts'
import { addressOf, authorizationOf, expectedAddress, expectedAuthorization } from './ambient/compare.ts'
import { type Conversation, runConversation } from './ambient/conversation.ts'
import { createMesh, type Mesh, readObjects, readYaml } from './ambient/mesh.ts'

interface Case {
  readonly settings: { readonly clusterId: string; readonly domainSuffix: string; readonly rootNamespace: string }
  readonly flags?: Readonly<Record<string, unknown>>
  readonly meshConfig?: AmbientMeshConfig
  readonly steps: readonly {
    readonly apply?: Readonly<Record<string, string>>
    readonly delete?: Readonly<Record<string, readonly string[]>>
    readonly expect: string
  }[]
}

interface Expected {
  readonly addresses?: readonly { [key: string]: JsonValue }[]
  readonly authorizations?: readonly { readonly name: string; readonly authorization: JsonValue }[]
  readonly changed?: readonly string[]
  readonly removed?: readonly string[]
  readonly changedAuthorizations?: readonly string[]
  readonly removedAuthorizations?: readonly string[]
  readonly lookups?: Readonly<Record<string, readonly string[]>>
  readonly conditions?: readonly ExpectedCondition[]
}

interface ExpectedCondition {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}

const comparedConditions = [
  'istio.io/WaypointBound',
  'istio.io/WaypointMissing',
  'istio.io/VisibilityApplied',
  'ZtunnelAccepted',
]

export const cases: ListCases = (suiteDir) =>
  readdirSync(suiteDir)
    .filter((name) => statSync(join(suiteDir, name)).isDirectory())
    .map((name): ConformanceCase => {
      const dir = join(suiteDir, name)
      if (existsSync(join(dir, 'case.yaml'))) return { name, run: () => runSteps(dir) }
      if (existsSync(join(dir, 'xds.yaml'))) {
        return { name, run: () => runConversation(readYaml<Conversation>(join(dir, 'xds.yaml'))) }
      }
      if (existsSync(join(dir, 'ipalloc.yaml'))) {
        return { name, run: () => runAllocation(join(dir, 'ipalloc.yaml')) }
      }
      return { name, run: () => assert.fail('unknown kind of case') }
    })

function runSteps(dir: string): void {
  const { settings, flags = {}, meshConfig = {}, steps } = readYaml<Case>(join(dir, 'case.yaml'))
  const { clusterId, domainSuffix, rootNamespace } = settings
  const mesh = createMesh({ clusterId, domainSuffix, systemNamespace: rootNamespace }, flags, {
    ...meshConfig,
    rootNamespace,
  })
  for (const [at, step] of steps.entries()) {
    const context = `step ${at + 1} (${step.expect})`
    const expected = readYaml<Expected>(join(dir, step.expect))
    const [addresses, authorizations] = [watch(mesh.index.addresses), watch(mesh.index.authorizations)]
    const files = Object.entries(step.apply ?? {})
    mesh.change(
      Object.fromEntries(files.map(([cluster, file]) => [cluster, readObjects(join(dir, file))])),
      step.delete ?? {},
    )
    checkResources(expected, addresses.stop(), authorizations.stop(), at === 0, mesh, context)
    checkLookups(mesh, expected.lookups ?? {}, context)
    if (expected.conditions !== undefined) checkConditions(mesh, expected.conditions, context)
  }
}

interface AllocationCase {
  readonly ipv4Prefix: string
  readonly ipv6Prefix: string
  readonly steps: readonly {
    readonly apply: readonly ServiceEntry[]
    readonly expect: Readonly<Record<string, readonly HostAddress[]>>
  }[]
}

/** Entries are kept as the API keeps them: what is applied replaces, what is written comes back as an event. */
function runAllocation(file: string): void {
  const { ipv4Prefix, ipv6Prefix, steps } = readYaml<AllocationCase>(file)
  const exhausted = (): void => assert.fail('range exhausted')
  const allocator = new AddressAllocator({ ipv4Prefix, ipv6Prefix, exhausted })
  const stored = new Map<string, ServiceEntry>()
  for (const [at, { apply, expect }] of steps.entries()) {
    let events = apply
    while (events.length > 0) {
      for (const entry of events) stored.set(objectName(entry), entry)
      const writes = allocator.update(events.map((entry) => [objectName(entry), entry] as const))
      events = writes.map(({ entry, addresses }) => ({ ...entry, status: { ...entry.status, addresses } }))
    }
    for (const [name, expected] of Object.entries(expect)) {
      const text = ({ host, value }: { readonly host?: string; readonly value: string }): string => `${host} ${value}`
      const found = (stored.get(name)?.status?.addresses ?? []).map(text).sort()
      assert.deepEqual(found, expected.map(text).sort(), `step ${at + 1}: addresses of ${name}`)
    }
  }
}

interface Heard {
  readonly changed: readonly string[]
  readonly removed: readonly string[]
}

/** Collects the names that change until stopped. */
function watch(source: ResourceSource): { stop(): Heard } {
  const last = new Map<string, 'changed' | 'removed'>()
  const stop = source.subscribe((changes) => {
    for (const change of changes) last.set(change.name, change.new === undefined ? 'removed' : 'changed')
  })
  last.clear()
  const named = (kind: string): string[] => [...last].filter(([, one]) => one === kind).map(([name]) => name)
  return {
    stop: () => {
      stop()
      return { changed: named('changed').sort(), removed: named('removed').sort() }
    },
  }
}

function checkResources(
  expected: Expected,
  addresses: Heard,
  authorizations: Heard,
  first: boolean,
  mesh: Mesh,
  context: string,
): void {
  const { index } = mesh
  if (!first) {
    assert.deepEqual(addresses.changed, [...(expected.changed ?? [])].sort(), `${context}: changed addresses`)
    assert.deepEqual(addresses.removed, [...(expected.removed ?? [])].sort(), `${context}: removed addresses`)
    const removed = [...(expected.removedAuthorizations ?? [])].sort()
    assert.deepEqual(authorizations.removed, removed, `${context}: removed authorizations`)
    const missing = (expected.changedAuthorizations ?? []).filter((name) => !authorizations.changed.includes(name))
    assert.deepEqual(missing, [], `${context}: authorizations that should have changed`)
  }
  const present = (source: ResourceSource, names: readonly string[] | undefined): EncodedResource[] =>
    (first || names === undefined ? [...source.list()] : names.map((name) => source.get(name)))
      .filter((resource) => resource !== undefined)
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const byName = (a: { name?: unknown }, b: { name?: unknown }): number => (String(a.name) < String(b.name) ? -1 : 1)
  assert.deepEqual(
    present(index.addresses, expected.changed).map(addressOf),
    (expected.addresses ?? []).map(expectedAddress).sort(byName),
    `${context}: addresses`,
  )
  const policies = (expected.authorizations ?? []).toSorted(byName)
  assert.deepEqual(
    present(
      index.authorizations,
      policies.map(({ name }) => name),
    ).map(authorizationOf),
    policies.map(({ authorization }) => expectedAuthorization(authorization)),
    `${context}: authorizations`,
  )
}

function checkLookups({ index }: Mesh, lookups: Readonly<Record<string, readonly string[]>>, context: string): void {
  for (const [key, names] of Object.entries(lookups)) {
    const found = index.addresses.lookup?.(key) ?? []
    assert.deepEqual(found.map(({ name }) => name).sort(), [...names].sort(), `${context}: lookup of ${key}`)
  }
}

function checkConditions({ index }: Mesh, expected: readonly ExpectedCondition[], context: string): void {
  const text = (one: ExpectedCondition): string =>
    [one.kind, one.namespace, one.name, one.type, one.status, one.reason, one.message].join(' | ')
  const found = [...index.conditions.entries()].flatMap(([, { kind, namespace, name, conditions }]) =>
    conditions
      .filter(({ type }) => comparedConditions.includes(type))
      .map((condition) => text({ kind, namespace, name, ...condition })),
  )
  assert.deepEqual(found.sort(), expected.map(text).sort(), `${context}: conditions`)
}
