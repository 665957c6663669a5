// The endpoints of a service: every workload that names it, and those a local file gives it.
import type { TableView } from '../../shared-memory/index.ts'
import type { Endpoint, Service, Workload } from '../model.ts'
import { createEndpointList, type EndpointList } from './endpoint-list.ts'
import { createLists, type Located, loadAgain } from './lists.ts'
import type { Loaded } from './loaded.ts'
import { inOrder, tables } from './tables.ts'
import { serviceKey } from './view.ts'

interface Members {
  readonly size: number
  readonly located: readonly Located<Endpoint | undefined>[]
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
    return lists.get(key, view.generationOf(map), (before) => {
      const located = loadAgain(view, inOrder(view, map), before?.located ?? [], (leaf) =>
        endpointOf(workloads.peek(leaf), key),
      )
      const endpoints = located.flatMap(({ value }) => value ?? [])
      return { size: located.length, located, list: createEndpointList(endpoints) }
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

function endpointOf(workload: Workload, service: string): Endpoint | undefined {
  const ports = workload.services.get(service)
  return ports === undefined ? undefined : { workload, ports, status: workload.status }
}
