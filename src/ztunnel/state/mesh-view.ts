// The mesh in shared memory as decisions ask for it. The same code on the thread that writes and on those that only read.
import { SharedMemoryError, type TableView } from '../../shared-memory/index.ts'
import type { Service, Workload } from '../model.ts'
import { type IpBits, ipBits } from './address.ts'
import { createApplicablePolicies } from './applicable-policies.ts'
import { createLists } from './lists.ts'
import { createLoaded } from './loaded.ts'
import { preferredService, preferredWorkload } from './preference.ts'
import { createServiceEndpoints } from './service-endpoints.ts'
import { createPolicyLoader } from './stored-policy.ts'
import { createServiceLoader } from './stored-service.ts'
import { createWorkloadLoader } from './stored-workload.ts'
import { addressKey, blockKey, hostnameKey, inOrder, placesOf, podKey, tables } from './tables.ts'
import { isVisible, type MeshView, serviceKey } from './view.ts'

/** What a thread keeps decoded at most. */
export interface ViewLimits {
  readonly things: number
  readonly endpoints: number
  readonly policies: number
}

export const usualLimits: ViewLimits = { things: 2000, endpoints: 30_000, policies: 20_000 }

export function createMeshView(view: TableView, limits: ViewLimits = usualLimits): MeshView {
  const loadWorkload = createWorkloadLoader()
  const workloads = createLoaded(view, limits.things, loadWorkload)
  const services = createLoaded(view, limits.things, createServiceLoader())
  const policies = createLoaded(view, limits.things, createPolicyLoader())
  const lengthLists = createLists<BlockLengths>(1000)

  const workload = (uid: string): Workload | undefined => workloads.get(view.find(tables.workloads, uid))
  const service = (key: string): Service | undefined => services.get(view.find(tables.services, key))

  function workloadAt(list: number): Workload | undefined {
    if (list === 0) return undefined
    if (view.valueLength(list) === 4) return workloads.get(view.wordOf(list, 0))
    return preferredWorkload(placesOf(view, list).map((leaf) => workloads.peek(leaf)))
  }

  function servicesAt(list: number): readonly Service[] {
    const found: Service[] = []
    for (const leaf of placesOf(view, list)) found.push(services.get(leaf) as Service)
    return found
  }

  /** From the longest to the shortest. */
  function blockLengths(network: string): readonly BlockLength[] {
    const map = view.find(tables.blockLengths, network)
    if (map === 0) return none
    return lengthLists.get(network, view.generationOf(map), () => {
      const lengths = view.leavesIn(map).map((leaf) => toBlockLength(view.keyOf(leaf)))
      return { size: lengths.length, lengths: lengths.sort((a, b) => b.length - a.length) }
    }).lengths
  }

  /** Own namespace before longer block before canonical. */
  function byBlock(network: string, bits: IpBits, clientNamespace: string | undefined): Service | undefined {
    let best: { readonly service: Service; readonly own: boolean; readonly length: number } | undefined
    for (const { family, length, shift } of blockLengths(network)) {
      if (family !== bits.family) continue
      const list = view.find(tables.blocks, blockKey(network, family, length, bits.value >> shift))
      for (const one of servicesAt(list)) {
        if (!isVisible(one, clientNamespace)) continue
        const own = one.namespace === clientNamespace
        const sameRank = best?.own === own && best.length === length
        if (best === undefined || (own && !best.own) || (sameRank && one.canonical))
          best = { service: one, own, length }
      }
    }
    return best?.service
  }

  /** An iteration cannot go on in another generation: what it stands on may be used again. */
  function* each<T>(table: number, load: (leaf: number) => T): Generator<T> {
    const { generation } = view
    for (const leaf of view.leaves(table)) {
      if (view.generation !== generation) {
        throw new SharedMemoryError('CONTENT_MOVED', 'the mesh has changed while it was listed')
      }
      yield load(leaf)
    }
  }

  const servicesByHostname = (hostname: string): readonly Service[] =>
    servicesAt(view.find(tables.serviceHostnames, hostname.toLowerCase()))

  return {
    workload,
    workloadByAddress: (network, ip) => workloadAt(view.find(tables.workloadAddresses, addressKey(network, ip))),
    workloadByHostname: (namespace, hostname) =>
      workloadAt(view.find(tables.workloadHostnames, hostnameKey(namespace, hostname))),
    localWorkload(pod) {
      for (const leaf of placesOf(view, view.find(tables.pods, podKey(pod)))) {
        const found = workloads.get(leaf)
        // Names with slashes could make the key of another pod.
        if (found?.name === pod.name && found.namespace === pod.namespace) return found
      }
      return undefined
    },
    service,
    serviceByVip(network, ip, clientNamespace) {
      const exact = preferredService(servicesAt(view.find(tables.vips, addressKey(network, ip))), clientNamespace)
      if (exact !== undefined || view.find(tables.blockLengths, network) === 0) return exact
      return byBlock(network, ipBits(ip), clientNamespace)
    },
    serviceByHostname: (hostname, clientNamespace) => preferredService(servicesByHostname(hostname), clientNamespace),
    servicesByHostname,
    endpoints: createServiceEndpoints(view, workloads, workload, limits.endpoints),
    endpoint(of, uid) {
      const found = workload(uid)
      if (found === undefined) return undefined
      const fixed = of.fixedEndpoints?.get(uid)
      if (fixed !== undefined) return { workload: found, ports: fixed.ports, status: fixed.status }
      const ports = found.services.get(serviceKey(of))
      return ports === undefined ? undefined : { workload: found, ports, status: found.status }
    },
    policy: (key) => policies.get(view.find(tables.policies, key)),
    policiesFor: createApplicablePolicies(view, policies, limits.policies),
    workloads: () => each(tables.workloads, workloads.peek),
    services: () => each(tables.services, services.peek),
    policies: () => each(tables.policies, policies.peek),
    *stagedServices() {
      for (const map of each(tables.members, (leaf) => leaf)) {
        const key = view.keyOf(map)
        if (view.find(tables.services, key) !== 0) continue
        yield [key, inOrder(view, map).map(({ place }) => workloads.peek(place))] as const
      }
    },
  }
}

const none: readonly never[] = []

interface BlockLengths {
  readonly size: number
  readonly lengths: readonly BlockLength[]
}

interface BlockLength {
  readonly family: 4 | 6
  readonly length: number
  readonly shift: bigint
}

function toBlockLength(key: string): BlockLength {
  const [family, length] = key.split('/').map(Number)
  const known = family === 4 ? 4 : 6
  return { family: known, length: length ?? 0, shift: BigInt((known === 4 ? 32 : 128) - (length ?? 0)) }
}
