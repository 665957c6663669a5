// Services by name, host name, address and address block.
import type { Service } from '../model.ts'
import { type IpBits, ipBits, parseCidr } from './address.ts'
import { isVisible, serviceKey } from './view.ts'

export interface ServiceIndex {
  get(key: string): Service | undefined
  byVip(network: string, ip: string, clientNamespace: string | undefined): Service | undefined
  byHostname(hostname: string): readonly Service[]
  values(): Iterable<Service>
  put(service: Service): Service | undefined
  remove(key: string): Service | undefined
}

/** The one a client gets of several services: its own namespace's, else the last canonical, else the first. */
export function preferredService(
  services: readonly Service[],
  clientNamespace: string | undefined,
): Service | undefined {
  let first: Service | undefined
  let canonical: Service | undefined
  for (const service of services) {
    if (!isVisible(service, clientNamespace)) continue
    if (service.namespace === clientNamespace) return service
    if (service.canonical) canonical = service
    first ??= service
  }
  return canonical ?? first
}

/** All blocks of one length of one family: masked address → services. */
interface Blocks {
  readonly family: 4 | 6
  readonly length: number
  readonly shift: bigint
  readonly services: Map<bigint, Service[]>
}

const none: readonly Service[] = []

export function createServiceIndex(): ServiceIndex {
  const byKey = new Map<string, Service>()
  const byHostname = new Map<string, Service[]>()
  const byVip = new Map<string, Map<string, Service[]>>()
  const blocksByNetwork = new Map<string, Blocks[]>()

  function vips(network: string): Map<string, Service[]> {
    const known = byVip.get(network)
    if (known !== undefined) return known
    const created = new Map<string, Service[]>()
    byVip.set(network, created)
    return created
  }

  function blockList(network: string, cidrText: string): { list: Map<bigint, Service[]>; prefix: bigint } | undefined {
    const cidr = parseCidr(cidrText)
    if (cidr === undefined) return undefined
    const all = blocksByNetwork.get(network) ?? []
    let blocks = all.find((one) => one.family === cidr.family && one.length === cidr.length)
    if (blocks === undefined) {
      blocks = { family: cidr.family, length: cidr.length, shift: cidr.shift, services: new Map() }
      blocksByNetwork.set(
        network,
        [...all, blocks].sort((a, b) => b.length - a.length),
      )
    }
    return { list: blocks.services, prefix: cidr.prefix }
  }

  /** Own namespace before longer block before canonical; the lists go from the longest block to the shortest. */
  function byBlock(network: string, bits: IpBits, clientNamespace: string | undefined): Service | undefined {
    let best: { readonly service: Service; readonly own: boolean; readonly length: number } | undefined
    for (const { family, length, shift, services } of blocksByNetwork.get(network) ?? []) {
      if (family !== bits.family) continue
      for (const service of services.get(bits.value >> shift) ?? none) {
        if (!isVisible(service, clientNamespace)) continue
        const own = service.namespace === clientNamespace
        const sameRank = best?.own === own && best.length === length
        if (best === undefined || (own && !best.own) || (sameRank && service.canonical)) best = { service, own, length }
      }
    }
    return best?.service
  }

  return {
    get: (key) => byKey.get(key),
    byVip(network, ip, clientNamespace) {
      const exact = byVip.get(network)?.get(ip)
      const found = exact === undefined ? undefined : preferredService(exact, clientNamespace)
      if (found !== undefined || !blocksByNetwork.has(network)) return found
      return byBlock(network, ipBits(ip), clientNamespace)
    },
    byHostname: (hostname) => byHostname.get(hostname.toLowerCase()) ?? none,
    values: () => byKey.values(),
    put(service) {
      const key = serviceKey(service)
      const old = byKey.get(key)
      byKey.set(key, service)
      replaceIn(byHostname, old?.hostname.toLowerCase(), service.hostname.toLowerCase(), key, service)
      const kept = new Set(service.vips.map((vip) => `${vip.network}/${vip.ip}`))
      for (const vip of old?.vips ?? []) {
        if (!kept.has(`${vip.network}/${vip.ip}`)) takeFrom(vips(vip.network), vip.ip, key)
      }
      for (const vip of service.vips) putInto(vips(vip.network), vip.ip, key, service)
      removeBlocks(old, key)
      for (const { network, cidr } of service.cidrVips) {
        const blocks = blockList(network, cidr)
        if (blocks !== undefined) putInto(blocks.list, blocks.prefix, key, service)
      }
      return old
    },
    remove(key) {
      const old = byKey.get(key)
      if (old === undefined) return undefined
      byKey.delete(key)
      takeFrom(byHostname, old.hostname.toLowerCase(), key)
      for (const vip of old.vips) takeFrom(vips(vip.network), vip.ip, key)
      removeBlocks(old, key)
      return old
    },
  }

  function removeBlocks(old: Service | undefined, key: string): void {
    for (const { network, cidr } of old?.cidrVips ?? []) {
      const blocks = blockList(network, cidr)
      if (blocks === undefined) continue
      takeFrom(blocks.list, blocks.prefix, key)
      const left = (blocksByNetwork.get(network) ?? []).filter((one) => one.services.size > 0)
      if (left.length > 0) blocksByNetwork.set(network, left)
      else blocksByNetwork.delete(network)
    }
  }
}

/** Keeps the place of a service that is already in the list, so that an update does not change which one is first. */
function putInto<K>(lists: Map<K, Service[]>, at: K, key: string, service: Service): void {
  const list = lists.get(at)
  if (list === undefined) {
    lists.set(at, [service])
    return
  }
  const index = list.findIndex((one) => serviceKey(one) === key)
  if (index < 0) list.push(service)
  else list[index] = service
}

function takeFrom<K>(lists: Map<K, Service[]>, at: K, key: string): void {
  const list = lists.get(at)
  const index = list?.findIndex((one) => serviceKey(one) === key) ?? -1
  if (list === undefined || index < 0) return
  list.splice(index, 1)
  if (list.length === 0) lists.delete(at)
}

function replaceIn(
  lists: Map<string, Service[]>,
  before: string | undefined,
  now: string,
  key: string,
  service: Service,
): void {
  if (before !== undefined && before !== now) takeFrom(lists, before, key)
  putInto(lists, now, key, service)
}
