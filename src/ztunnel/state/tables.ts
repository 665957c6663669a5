// The tables of the mesh in shared memory, and their keys. Places are leaves, good within one generation.
import type { TableView } from '../../shared-memory/index.ts'
import type { Cidr } from '../model.ts'

export const tables = {
  /** uid → workload. */
  workloads: 0,
  /** Network and address → places of workloads, the newest last. */
  workloadAddresses: 1,
  /** Namespace and host name → places of workloads, the newest last. */
  workloadHostnames: 2,
  /** Key of a service → map of the uids of its workloads → place, order. */
  members: 3,
  /** Key → service. */
  services: 4,
  /** Host name in lower case → places of services, the first seen first. */
  serviceHostnames: 5,
  /** Network and address → places of services, the first seen first. */
  vips: 6,
  /** Network and block → places of services, the first seen first. */
  blocks: 7,
  /** Network → map of family and length → how many blocks there are. */
  blockLengths: 8,
  /** Key → policy. */
  policies: 9,
  /** Scope (see `scopeKey`) and what a connection must meet → map of the keys of policies → place, order. */
  policyConditions: 10,
  /** Namespace, service account and name → places of this node's workloads, the newest last. */
  pods: 11,
  /** Scope → how many of its policies are ALLOW, and how many of those only look on. */
  allowPolicies: 12,
  /** Texts that several workloads have in common; workloads name their places. */
  texts: 13,
}

export const tableCount = Object.keys(tables).length

/** An address and a block have no `/` before the last one, so that no two pairs have one key. */
export const addressKey = (network: string, ip: string): string => `${network}/${ip}`

export const podKey = (one: {
  readonly namespace: string
  readonly serviceAccount: string
  readonly name: string
}): string => `${one.namespace}/${one.serviceAccount}/${one.name}`

export const hostnameKey = (namespace: string, hostname: string): string => `${namespace}/${hostname}`

/** Whose policies: of the workloads of a namespace, or of all when there is none. An empty namespace is one, too. */
export const scopeKey = (namespace: string | undefined): string => (namespace === undefined ? '' : `/${namespace}`)

export const conditionKey = (scope: string, condition: string): string => `${scope.length}:${scope}${condition}`

export const lengthKey = (family: 4 | 6, length: number): string => `${family}/${length}`

export const blockKey = (network: string, family: 4 | 6, length: number, prefix: bigint): string =>
  `${family}/${length}/${prefix.toString(16)}/${network}`

export const blockKeyOf = (network: string, cidr: Cidr): string =>
  blockKey(network, cidr.family, cidr.length, cidr.prefix)

/** A place with its order, in the words of a value: later is higher. */
export const ordered = (leaf: number, order: number): readonly number[] => [
  leaf,
  order % limb,
  Math.floor(order / limb),
]

const limb = 2 ** 31

export interface Ordered {
  readonly place: number
  readonly order: number
}

/** An entry of a map with a place and an order. */
export const entryAt = (view: TableView, entry: number): Ordered => ({
  place: view.wordOf(entry, 0),
  order: view.wordOf(entry, 1) + view.wordOf(entry, 2) * limb,
})

/** The places in a map, in their order. */
export function inOrder(view: TableView, mapLeaf: number): readonly Ordered[] {
  const entries = view.leavesIn(mapLeaf).map((entry) => entryAt(view, entry))
  return entries.sort((a, b) => a.order - b.order)
}

/** The places of a value that is a list of them. */
export function placesOf(view: TableView, leaf: number): number[] {
  if (leaf === 0) return []
  const count = view.valueLength(leaf) / 4
  return Array.from({ length: count }, (_, index) => view.wordOf(leaf, index))
}
