// Encoded collections as the resource sources that are served over xDS.
import type { Change, Collection, Graph } from '../../collections/index.ts'
import type { EncodedResource, Reach, ResourceChange, ResourceSource } from '../../xds/index.ts'
import type { EncodedAddress } from './encoded.ts'

export const addressTypeUrl = 'type.googleapis.com/istio.workload.Address'
export const workloadTypeUrl = 'type.googleapis.com/istio.workload.Workload'
export const authorizationTypeUrl = 'type.googleapis.com/istio.security.Authorization'

/** Workloads and services together, found by name, by address, and workloads by their services. */
export function addressSource(graph: Graph, addresses: Collection<EncodedAddress>): ResourceSource {
  const byAlias = graph.index('addresses/alias', addresses, ({ aliases }) => aliases)
  const byService = graph.index('addresses/service', addresses, ({ services }) => services)
  const byNode = graph.index('addresses/node', addresses, ({ node }) => (node === '' ? [] : [node]))
  return {
    typeUrl: addressTypeUrl,
    get synced() {
      return addresses.synced
    },
    *list() {
      for (const [, address] of addresses.entries()) yield address
    },
    get: (name) => addresses.get(name),
    lookup: (key) => {
      if (!key.includes('/')) return []
      const named = addresses.get(key)
      if (named?.kind === 'workload') return [named]
      const found = byAlias.get(key)
      const workloads = found.filter(({ kind }) => kind === 'workload')
      if (named === undefined && workloads.length > 0) return workloads
      const service = named ?? preferred(found)
      return service === undefined ? [] : [service, ...byService.get(service.name)]
    },
    namesOfNode: (node) => byNode.get(node).map(({ name }) => name),
    subscribe: (listener) => addresses.subscribe((changes) => listener(changes.map(addressChange))),
  }
}

/** Of several services with one address the canonical one, then the first by name. */
function preferred(services: readonly EncodedAddress[]): EncodedAddress | undefined {
  return services.find(({ canonical }) => canonical) ?? services[0]
}

/** The workloads alone, without the Address around them. */
export function workloadSource(addresses: Collection<EncodedAddress>): ResourceSource {
  const bare = (address: EncodedAddress | undefined): EncodedResource | undefined =>
    address?.kind === 'workload'
      ? { name: address.name, aliases: address.aliases, version: address.version, body: address.inner }
      : undefined
  return {
    typeUrl: workloadTypeUrl,
    get synced() {
      return addresses.synced
    },
    *list() {
      for (const [, address] of addresses.entries()) {
        const resource = bare(address)
        if (resource !== undefined) yield resource
      }
    },
    get: (name) => bare(addresses.get(name)),
    subscribe: (listener) =>
      addresses.subscribe((changes) => {
        const own = changes.filter(
          (change) => (change.kind === 'removed' ? change.old : change.new).kind === 'workload',
        )
        if (own.length === 0) return
        listener(
          own.map((change) => {
            const { old, new: next, ...rest } = addressChange(change)
            const [before, after] = [bare(old as EncodedAddress | undefined), bare(next as EncodedAddress | undefined)]
            return {
              ...rest,
              ...(before === undefined ? {} : { old: before }),
              ...(after === undefined ? {} : { new: after }),
            }
          }),
        )
      }),
  }
}

export function authorizationSource(authorizations: Collection<EncodedResource>): ResourceSource {
  return {
    typeUrl: authorizationTypeUrl,
    get synced() {
      return authorizations.synced
    },
    *list() {
      for (const [, authorization] of authorizations.entries()) yield authorization
    },
    get: (name) => authorizations.get(name),
    subscribe: (listener) =>
      authorizations.subscribe((changes) =>
        listener(changes.map((change) => ({ name: change.key, ...sides(change) }))),
      ),
  }
}

function addressChange(change: Change<EncodedAddress>): ResourceChange {
  let known: Reach | undefined
  return {
    name: change.key,
    ...sides(change),
    reach() {
      known ??= reachOf(change)
      return known
    },
  }
}

function reachOf(change: Change<EncodedAddress>): Reach {
  const both = [change.kind === 'added' ? undefined : change.old, change.kind === 'removed' ? undefined : change.new]
  const present = both.filter((address) => address !== undefined)
  return {
    keys: [...new Set(present.flatMap(({ name, aliases, services }) => [name, ...aliases, ...services]))],
    nodes: [...new Set(present.flatMap(({ node }) => (node === '' ? [] : [node])))],
  }
}

function sides<T extends EncodedResource>(change: Change<T>): { old?: T; new?: T } {
  switch (change.kind) {
    case 'added':
      return { new: change.new }
    case 'updated':
      return { old: change.old, new: change.new }
    case 'removed':
      return { old: change.old }
  }
}
