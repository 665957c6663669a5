// MeshNetworks: which endpoints are on which network, and the gateways into each.
import { isIP } from 'node:net'
import { parse } from 'yaml'

export interface MeshNetworks {
  readonly networks: Readonly<Record<string, MeshNetwork>>
}

export interface MeshNetwork {
  readonly endpoints?: readonly { readonly fromRegistry?: string; readonly fromCidr?: string }[]
  readonly gateways?: readonly {
    readonly registryServiceName?: string
    readonly address?: string
    readonly port?: number
    readonly locality?: string
  }[]
}

export type MeshNetworksReading =
  | { readonly kind: 'read'; readonly networks: MeshNetworks }
  | { readonly kind: 'invalid'; readonly problem: string }

/** `where` names the source in the problem's text. Empty text is no networks. */
export function readMeshNetworks(yaml: string, where: string): MeshNetworksReading {
  let value: unknown
  try {
    value = parse(yaml) ?? {}
  } catch (error) {
    return { kind: 'invalid', problem: `${where}: ${error instanceof Error ? error.message : String(error)}` }
  }
  const problems: string[] = []
  const networks = isRecord(value) ? (value.networks ?? {}) : undefined
  if (!isRecord(networks)) return { kind: 'invalid', problem: `${where}: networks: expected a mapping by network` }
  for (const [name, network] of Object.entries(networks)) check(name, network, problems)
  if (problems.length > 0) {
    return { kind: 'invalid', problem: problems.map((problem) => `${where}: ${problem}`).join('; ') }
  }
  return { kind: 'read', networks: { networks: withoutNulls(networks as MeshNetworks['networks']) } }
}

/** A list that is written without a value is an empty one. */
function withoutNulls(networks: MeshNetworks['networks']): MeshNetworks['networks'] {
  return Object.fromEntries(
    Object.entries(networks).map(([name, { endpoints, gateways }]) => [
      name,
      { ...(endpoints == null ? {} : { endpoints }), ...(gateways == null ? {} : { gateways }) },
    ]),
  )
}

/** Clusters that several networks claim, with the one that counts: the first. */
export function repeatedRegistries({ networks }: MeshNetworks): { registry: string; counts: string }[] {
  const first = new Map<string, string>()
  const repeated = new Set<string>()
  for (const [network, { endpoints }] of Object.entries(networks)) {
    for (const { fromRegistry } of endpoints ?? []) {
      if (fromRegistry === undefined) continue
      if (first.has(fromRegistry)) repeated.add(fromRegistry)
      else first.set(fromRegistry, network)
    }
  }
  return [...repeated].map((registry) => ({ registry, counts: first.get(registry) ?? '' }))
}

function check(name: string, network: unknown, problems: string[]): void {
  const at = `networks.${name}`
  if (!isRecord(network)) {
    problems.push(`${at}: expected a mapping`)
    return
  }
  listOf(network.endpoints, `${at}.endpoints`, problems).forEach((endpoint, index) => {
    const { fromRegistry, fromCidr } = endpoint
    const isOne = (typeof fromRegistry === 'string') !== (typeof fromCidr === 'string' && isCidr(fromCidr))
    if (!isOne) problems.push(`${at}.endpoints[${index}]: expected fromRegistry or a fromCidr such as 10.0.0.0/8`)
  })
  listOf(network.gateways, `${at}.gateways`, problems).forEach((gateway, index) => {
    const { registryServiceName, address, port } = gateway
    if ((typeof registryServiceName === 'string') === (typeof address === 'string')) {
      problems.push(`${at}.gateways[${index}]: expected registryServiceName or address`)
    }
    if (!Number.isInteger(port) || Number(port) < 1 || Number(port) > 65_535) {
      problems.push(`${at}.gateways[${index}].port: expected a port`)
    }
  })
}

function listOf(value: unknown, at: string, problems: string[]): readonly Record<string, unknown>[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value) && value.every(isRecord)) return value
  problems.push(`${at}: expected a list of mappings`)
  return []
}

function isCidr(text: string): boolean {
  const [address = '', length = ''] = text.split('/')
  const family = isIP(address)
  return family !== 0 && /^\d+$/.test(length) && Number(length) <= (family === 6 ? 128 : 32)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
