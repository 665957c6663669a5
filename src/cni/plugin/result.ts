// CNI results: the addresses the plugins before this one gave the pod.
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { CniError, type PluginConfig } from './config.ts'

/** One address as the node agent's socket expects it (Go's JSON of a CNI IP). */
export interface AgentIp {
  readonly Interface: number | null
  readonly Address: { readonly IP: string; readonly Mask: string }
  readonly Gateway: string
}

interface ResultIp {
  readonly address?: string
  readonly ip?: string
  readonly gateway?: string
  readonly interface?: number
}

/** The addresses in a result of any CNI version; null without a result. Throws a CniError for one that can't be read. */
export function addressesOf({ prevResult }: PluginConfig): AgentIp[] | null {
  if (prevResult === undefined) return null
  const { ips, ip4, ip6 } = prevResult as { ips?: ResultIp[] | null; ip4?: ResultIp; ip6?: ResultIp }
  const all = ips ?? [ip4, ip6].filter((one) => one !== undefined)
  if (!Array.isArray(all)) throw new CniError('could not convert result to current version: ips: expected a list')
  return all.map((one) => {
    const [ip = '', length = ''] = (one.address ?? one.ip ?? '').split('/')
    const bits = isIP(ip) === 4 ? 32 : 128
    if (isIP(ip) === 0 || !/^\d+$/.test(length) || Number(length) > bits) {
      throw new CniError(`could not convert result to current version: invalid address "${one.address ?? one.ip}"`)
    }
    return {
      Interface: one.interface ?? null,
      Address: { IP: ip, Mask: mask(Number(length), bits) },
      Gateway: one.gateway ?? '',
    }
  })
}

function mask(length: number, bits: 32 | 128): string {
  const family = bits === 32 ? ipaddr.IPv4 : ipaddr.IPv6
  return Buffer.from(family.subnetMaskFromPrefixLength(length).toByteArray()).toString('base64')
}

/** What ADD prints: the result so far, unchanged, or an empty one. */
export function resultOf({ prevResult, cniVersion }: PluginConfig): Record<string, unknown> {
  return prevResult === undefined ? { cniVersion, dns: {} } : { ...prevResult, cniVersion }
}
