// MeshNetworks, made ready for lookups: the network of a cluster, and of an address.
import { masked, type Prefix, parsePrefix } from './addresses.ts'

/** The fields of mesh networks that the index reads. */
export interface AmbientMeshNetworks {
  readonly networks: Readonly<Record<string, AmbientMeshNetwork>>
}

export interface AmbientMeshNetwork {
  readonly endpoints?: readonly { readonly fromRegistry?: string; readonly fromCidr?: string }[]
  readonly gateways?: readonly WrittenGateway[]
}

/** A gateway as it is written: by the host name of a Service, or by an address. */
export interface WrittenGateway {
  readonly registryServiceName?: string
  readonly address?: string
  readonly port?: number
}

export interface NetworkPlan {
  /** Network by cluster id: of several that name a cluster the first counts. */
  readonly byCluster: ReadonlyMap<string, string>
  /** The longest prefix first. */
  readonly ranges: readonly { readonly network: string; readonly prefix: Prefix }[]
}

export function networkPlan({ networks }: AmbientMeshNetworks): NetworkPlan {
  const byCluster = new Map<string, string>()
  const ranges: { network: string; prefix: Prefix }[] = []
  for (const [network, { endpoints = [] }] of Object.entries(networks)) {
    for (const { fromRegistry, fromCidr } of endpoints) {
      if (fromRegistry !== undefined && !byCluster.has(fromRegistry)) byCluster.set(fromRegistry, network)
      const prefix = fromCidr === undefined ? undefined : parsePrefix(fromCidr)
      if (prefix !== undefined) ranges.push({ network, prefix: { ...prefix, address: masked(prefix) } })
    }
  }
  return { byCluster, ranges: ranges.sort((a, b) => b.prefix.length - a.prefix.length) }
}

/** The network of the longest prefix that contains the address; of equal ones the first written. */
export function networkOfAddress({ ranges }: NetworkPlan, address: Uint8Array): string | undefined {
  return ranges.find(({ prefix }) => contains(prefix, address))?.network
}

function contains(prefix: Prefix, address: Uint8Array): boolean {
  if (prefix.address.length !== address.length) return false
  return masked({ address, length: prefix.length }).every((byte, at) => byte === prefix.address[at])
}
