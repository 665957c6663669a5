// Workloads by uid, address, host name, service, and, for those of this node, by pod and identity.
import type { PodInfo, Workload } from '../model.ts'

export interface WorkloadIndex {
  get(uid: string): Workload | undefined
  byAddress(network: string, ip: string): Workload | undefined
  byHostname(namespace: string, hostname: string): Workload | undefined
  local(pod: PodInfo): Workload | undefined
  hasLocalIdentity(identity: LocalIdentity): boolean
  ofService(key: string): Iterable<Workload>
  /** Every service key some workload names, with those workloads. */
  memberships(): Iterable<readonly [key: string, workloads: Iterable<Workload>]>
  values(): Iterable<Workload>
  put(workload: Workload): Workload | undefined
  remove(uid: string): Workload | undefined
}

type LocalIdentity = Pick<Workload, 'trustDomain' | 'namespace' | 'serviceAccount'>

/** Most places hold one workload; a set is made for the second. */
type OneOrMore = Workload | readonly Workload[]

export function createWorkloadIndex(node: string | undefined): WorkloadIndex {
  const byUid = new Map<string, Workload>()
  const byAddress = new Map<string, Map<string, OneOrMore>>()
  const byHostname = new Map<string, OneOrMore>()
  const byAccount = new Map<string, Map<string, Workload>>()
  const byService = new Map<string, Map<string, Workload>>()

  const isLocal = (workload: Workload): boolean => node === undefined || node === '' || workload.node === node
  const accountOf = (one: { readonly namespace: string; readonly serviceAccount: string }): string =>
    `${one.namespace}/${one.serviceAccount}`

  function addressesOf(network: string): Map<string, OneOrMore> {
    const known = byAddress.get(network)
    if (known !== undefined) return known
    const created = new Map<string, OneOrMore>()
    byAddress.set(network, created)
    return created
  }

  function unlink(workload: Workload): void {
    const { uid } = workload
    if (workload.networkMode !== 'HostNetwork') {
      for (const ip of workload.addresses) drop(addressesOf(workload.network), ip, uid)
    }
    if (workload.hostname !== '') drop(byHostname, `${workload.namespace}/${workload.hostname}`, uid)
    if (isLocal(workload)) leave(byAccount, accountOf(workload), uid)
    for (const key of workload.services.keys()) leave(byService, key, uid)
  }

  function link(workload: Workload): void {
    if (workload.networkMode !== 'HostNetwork') {
      const addresses = addressesOf(workload.network)
      for (const ip of workload.addresses) add(addresses, ip, workload)
    }
    if (workload.hostname !== '') add(byHostname, `${workload.namespace}/${workload.hostname}`, workload)
    if (isLocal(workload)) join(byAccount, accountOf(workload), workload)
    for (const key of workload.services.keys()) join(byService, key, workload)
  }

  return {
    get: (uid) => byUid.get(uid),
    byAddress: (network, ip) => preferred(byAddress.get(network)?.get(ip)),
    byHostname: (namespace, hostname) => preferred(byHostname.get(`${namespace}/${hostname}`)),
    local(pod) {
      for (const workload of byAccount.get(accountOf(pod))?.values() ?? []) {
        if (workload.name === pod.name) return workload
      }
      return undefined
    },
    hasLocalIdentity(identity) {
      for (const workload of byAccount.get(accountOf(identity))?.values() ?? []) {
        if (workload.trustDomain === identity.trustDomain) return true
      }
      return false
    },
    ofService: (key) => byService.get(key)?.values() ?? [],
    *memberships() {
      for (const [key, workloads] of byService) yield [key, workloads.values()]
    },
    values: () => byUid.values(),
    put(workload) {
      const old = byUid.get(workload.uid)
      if (old !== undefined) unlink(old)
      byUid.set(workload.uid, workload)
      link(workload)
      return old
    },
    remove(uid) {
      const old = byUid.get(uid)
      if (old === undefined) return undefined
      byUid.delete(uid)
      unlink(old)
      return old
    },
  }
}

/** A pod first, then one that speaks HBONE, then the newest. */
function preferred(found: OneOrMore | undefined): Workload | undefined {
  if (!isMany(found)) return found
  let best: Workload | undefined
  let bestRank = -1
  for (const workload of found) {
    const rank = (workload.uid.includes('//Pod/') ? 2 : 0) + (workload.protocol === 'HBONE' ? 1 : 0)
    if (rank < bestRank) continue
    best = workload
    bestRank = rank
  }
  return best
}

const isMany = (found: OneOrMore | undefined): found is readonly Workload[] => Array.isArray(found)

function add(places: Map<string, OneOrMore>, at: string, workload: Workload): void {
  const present = places.get(at)
  if (present === undefined) places.set(at, workload)
  else places.set(at, [...(isMany(present) ? present : [present]), workload])
}

function drop(places: Map<string, OneOrMore>, at: string, uid: string): void {
  const present = places.get(at)
  if (present === undefined) return
  const left = (isMany(present) ? present : [present]).filter((one) => one.uid !== uid)
  if (left.length === 0) places.delete(at)
  else places.set(at, left.length === 1 && left[0] !== undefined ? left[0] : left)
}

function join(sets: Map<string, Map<string, Workload>>, at: string, workload: Workload): void {
  const present = sets.get(at)
  if (present === undefined) sets.set(at, new Map([[workload.uid, workload]]))
  else present.set(workload.uid, workload)
}

function leave(sets: Map<string, Map<string, Workload>>, at: string, uid: string): void {
  const present = sets.get(at)
  if (present?.delete(uid) && present.size === 0) sets.delete(at)
}
