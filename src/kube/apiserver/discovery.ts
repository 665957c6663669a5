// Discovery: which groups, versions and resources are served, in the classic and the aggregated form.
import { createHash } from 'node:crypto'
import type { KindDefinition } from '../../api/index.ts'
import { pathNotFound } from './errors.ts'
import type { KindRegistry } from './types.ts'

const allVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']
const statusVerbs = ['get', 'patch', 'update']

interface Subresource {
  readonly name: string
  readonly kind: string
  readonly group: string
  readonly version: string
  readonly verbs: readonly string[]
}

/** The document at `/api`, `/apis` or below; `aggregated`: the form of apidiscovery.k8s.io/v2 (or `v2beta1`), at the two roots only. */
export function discoveryDocument(
  kinds: KindRegistry,
  path: string,
  aggregated: 'v2' | 'v2beta1' | undefined,
  serverAddress: string,
): unknown {
  const parts = path.split('/').filter((part) => part !== '')
  const [root, group, version] = parts
  if (parts.length === 1 && aggregated !== undefined) return aggregatedDocument(kinds, root === 'api', aggregated)
  if (root === 'api') {
    if (parts.length === 1) {
      return {
        kind: 'APIVersions',
        versions: ['v1'],
        serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
      }
    }
    if (parts.length === 2 && group === 'v1') return resourceList(kinds, '', 'v1')
  } else if (root === 'apis') {
    if (group === undefined) return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups(kinds).map(groupDocument) }
    const found = groups(kinds).find((one) => one.name === group)
    if (parts.length === 2 && found !== undefined)
      return { kind: 'APIGroup', apiVersion: 'v1', ...groupDocument(found) }
    if (parts.length === 3 && version !== undefined && found?.versions.includes(version)) {
      return resourceList(kinds, group, version)
    }
  }
  throw pathNotFound()
}

interface Group {
  readonly name: string
  readonly versions: readonly string[]
}

/** Groups other than the core one, each with its versions, the preferred first. */
function groups(kinds: KindRegistry): Group[] {
  const versions = new Map<string, Set<string>>()
  for (const kind of kinds.list()) {
    if (kind.group === '') continue
    const known = versions.get(kind.group) ?? new Set()
    versions.set(kind.group, known.add(kind.version))
  }
  return [...versions].map(([name, found]) => ({ name, versions: [...found].sort(compareVersions) }))
}

/** Stable versions first, then beta, then alpha; newer before older. */
export function compareVersions(a: string, b: string): number {
  const rank = (version: string): readonly number[] => {
    const found = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version)
    if (found === null) return [0, 0, 0]
    const stage = found[2] === undefined ? 3 : found[2] === 'beta' ? 2 : 1
    return [stage, Number(found[1]), Number(found[3] ?? 0)]
  }
  const [left, right] = [rank(a), rank(b)]
  for (const [index, value] of left.entries()) {
    const other = right[index] ?? 0
    if (value !== other) return other - value
  }
  return a < b ? -1 : a > b ? 1 : 0
}

function groupDocument({ name, versions }: Group): object {
  const all = versions.map((version) => ({ groupVersion: `${name}/${version}`, version }))
  return { name, versions: all, preferredVersion: all[0] }
}

function kindsOf(kinds: KindRegistry, group: string, version: string): KindDefinition[] {
  return kinds
    .list()
    .filter((kind) => kind.group === group && kind.version === version)
    .sort((a, b) => (a.plural < b.plural ? -1 : 1))
}

function resourceList(kinds: KindRegistry, group: string, version: string): unknown {
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: group === '' ? version : `${group}/${version}`,
    resources: kindsOf(kinds, group, version).flatMap((kind) => [
      {
        name: kind.plural,
        singularName: kind.singular,
        namespaced: kind.namespaced,
        kind: kind.kind,
        verbs: kind.verbs ?? allVerbs,
        ...(kind.shortNames === undefined || kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
        ...(kind.categories === undefined || kind.categories.length === 0 ? {} : { categories: kind.categories }),
        ...(kind.verbs === undefined ? { storageVersionHash: storageVersionHash(kind) } : {}),
      },
      ...subresourcesOf(kind).map((one) => ({
        name: `${kind.plural}/${one.name}`,
        singularName: '',
        namespaced: kind.namespaced,
        ...(one.group === kind.group && one.version === kind.version ? {} : { group: one.group, version: one.version }),
        kind: one.kind,
        verbs: one.verbs,
      })),
    ]),
  }
}

function storageVersionHash(kind: KindDefinition): string {
  const { group, version } = kind.storage ?? kind
  return createHash('sha256').update(`${group}/${version}/${kind.kind}`).digest('base64').slice(0, 11).concat('=')
}

function subresourcesOf(kind: KindDefinition): Subresource[] {
  const found: Subresource[] = []
  const { status, scale, others = {} } = kind.subresources
  for (const [name, other] of Object.entries(others)) {
    const { group = kind.group, version = kind.version } = other
    found.push({ name, kind: other.kind, group, version, verbs: other.verbs })
  }
  if (scale !== undefined)
    found.push({ name: 'scale', kind: 'Scale', group: 'autoscaling', version: 'v1', verbs: statusVerbs })
  if (status === true)
    found.push({ name: 'status', kind: kind.kind, group: kind.group, version: kind.version, verbs: statusVerbs })
  return found.sort((a, b) => (a.name < b.name ? -1 : 1))
}

function aggregatedDocument(kinds: KindRegistry, isCore: boolean, version: string): unknown {
  const shown = isCore ? [{ name: '', versions: ['v1'] }] : groups(kinds)
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: shown.map(({ name, versions }) => ({
      metadata: { ...(name === '' ? {} : { name }), creationTimestamp: null },
      versions: versions.map((one) => ({
        version: one,
        freshness: 'Current',
        resources: kindsOf(kinds, name, one).map(aggregatedResource),
      })),
    })),
  }
}

function aggregatedResource(kind: KindDefinition): unknown {
  const scope = kind.namespaced ? 'Namespaced' : 'Cluster'
  const subresources = subresourcesOf(kind)
  return {
    resource: kind.plural,
    responseKind: { group: kind.group, version: kind.version, kind: kind.kind },
    scope,
    singularResource: kind.singular,
    verbs: kind.verbs ?? allVerbs,
    ...(kind.shortNames === undefined || kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
    ...(kind.categories === undefined || kind.categories.length === 0 ? {} : { categories: kind.categories }),
    ...(subresources.length === 0
      ? {}
      : {
          subresources: subresources.map((one) => ({
            subresource: one.name,
            responseKind: { group: one.group, version: one.version, kind: one.kind },
            verbs: one.verbs,
          })),
        }),
  }
}

/** Which aggregated form an Accept header prefers over the classic one, and the content type to answer with. */
export function aggregatedForm(
  accept: string | undefined,
): { version: 'v2' | 'v2beta1'; contentType: string } | undefined {
  for (const part of (accept ?? '').split(',')) {
    const words = part.split(';').map((word) => word.trim())
    if (words[0] !== 'application/json' && words[0] !== '*/*') continue
    if (!words.includes('as=APIGroupDiscoveryList')) return undefined
    if (!words.includes('g=apidiscovery.k8s.io')) continue
    const version = words.includes('v=v2') ? 'v2' : words.includes('v=v2beta1') ? 'v2beta1' : undefined
    if (version === undefined) continue
    return { version, contentType: `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList` }
  }
  return undefined
}
