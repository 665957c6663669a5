// The endpoints of a service: every workload that names it, and those a local file gives it.
import type { TableView } from '../../shared-memory/index.ts'
import type { Endpoint, Service, Workload } from '../model.ts'
import { createEndpointList, type EndpointList } from './endpoint-list.ts'
import { createLists, type Entries, readEntries } from './lists.ts'
import type { Loaded } from './loaded.ts'
import { tables } from './tables.ts'
import { serviceKey } from './view.ts'

interface Members extends Entries<Endpoint> {
  readonly list: EndpointList
}

/** `mostKept`: endpoints that stay decoded. */
export function createServiceEndpoints(
  view: TableView,
  workloads: Loaded<Workload>,
  workload: (uid: string) => Workload | undefined,
  mostKept: number,
): (service: Service) => EndpointList {
  const lists = createLists<Members>(mostKept)
  const nobody = createEndpointList([])

  function membersOf(key: string): EndpointList {
    const map = view.find(tables.members, key)
    if (map === 0) return nobody
    const decoding = { load: (place: number) => endpointOf(workloads.peek(place), key), keyOf: uidOf }
    return lists.get(key, view.generationOf(map), (before) => {
      const entries = readEntries(view, map, before, decoding)
      return { ...entries, list: createEndpointList(entries.located.map(({ value }) => value)) }
    }).list
  }

  function* withFixed(members: Iterable<Endpoint>, fixed: NonNullable<Service['fixedEndpoints']>): Generator<Endpoint> {
    for (const member of members) if (!fixed.has(member.workload.uid)) yield member
    for (const one of fixed.values()) {
      const found = workload(one.workloadUid)
      if (found !== undefined) yield { workload: found, ports: one.ports, status: one.status }
    }
  }

  return (service) => {
    const members = membersOf(serviceKey(service))
    const { fixedEndpoints } = service
    return fixedEndpoints === undefined ? members : createEndpointList([...withFixed(members, fixedEndpoints)])
  }
}

const noPorts: ReadonlyMap<number, number> = new Map()

function endpointOf(workload: Workload, service: string): Endpoint {
  return { workload, ports: workload.services.get(service) ?? noPorts, status: workload.status }
}

const uidOf = ({ workload }: Endpoint): string => workload.uid
