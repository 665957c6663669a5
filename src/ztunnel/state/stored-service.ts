// A service in shared memory.
import type { TableView } from '../../shared-memory/index.ts'
import type { Service } from '../model.ts'
import { createFieldReader, type FieldWriter } from './fields.ts'
import { loadGateway, type StoredGateway, storeGateway } from './stored-gateway.ts'

type Ports = readonly (readonly [number, number])[]
type StoredService = readonly [
  name: string,
  namespace: string,
  hostname: string,
  vips: readonly (readonly [network: string, ip: string])[],
  cidrVips: readonly (readonly [network: string, cidr: string])[],
  ports: Ports,
  subjectAltNames: readonly string[],
  waypoint: StoredGateway,
  weightedWaypoints: readonly (readonly [gateway: StoredGateway, weight: number])[],
  loadBalancer: Service['loadBalancer'] | 0,
  ipFamilies: Service['ipFamilies'] | 0,
  canonical: boolean,
  visibility: Service['visibility'],
  fixedEndpoints: readonly (readonly [uid: string, ports: Ports, status: 'Healthy' | 'Unhealthy'])[] | 0,
]

export function storeService(fields: FieldWriter, service: Service): Uint8Array {
  const { fixedEndpoints } = service
  const stored: StoredService = [
    service.name,
    service.namespace,
    service.hostname,
    service.vips.map(({ network, ip }) => [network, ip]),
    service.cidrVips.map(({ network, cidr }) => [network, cidr]),
    [...service.ports],
    service.subjectAltNames,
    storeGateway(service.waypoint),
    service.weightedWaypoints.map(({ destination, weight }) => [storeGateway(destination), weight]),
    service.loadBalancer ?? 0,
    service.ipFamilies ?? 0,
    service.canonical,
    service.visibility,
    fixedEndpoints === undefined
      ? 0
      : [...fixedEndpoints.values()].map((one) => [one.workloadUid, [...one.ports], one.status]),
  ]
  fields.begin()
  fields.text(JSON.stringify(stored))
  return fields.finish()
}

export function createServiceLoader(): (view: TableView, leaf: number) => Service {
  const fields = createFieldReader()
  return (view, leaf) => {
    fields.open(view, leaf)
    return loadService(JSON.parse(fields.text()) as StoredService)
  }
}

function loadService(stored: StoredService): Service {
  const [name, namespace, hostname, vips, cidrVips, ports, subjectAltNames, storedWaypoint, weighted] = stored
  const [, , , , , , , , , loadBalancer, ipFamilies, canonical, visibility, fixed] = stored
  const waypoint = loadGateway(storedWaypoint)
  return {
    name,
    namespace,
    hostname,
    vips: vips.map(([network, ip]) => ({ network, ip })),
    cidrVips: cidrVips.map(([network, cidr]) => ({ network, cidr })),
    ports: new Map(ports),
    subjectAltNames,
    ...(waypoint === undefined ? {} : { waypoint }),
    weightedWaypoints: weighted.flatMap(([gateway, weight]) => {
      const destination = loadGateway(gateway)
      return destination === undefined ? [] : [{ destination, weight }]
    }),
    ...(loadBalancer === undefined || loadBalancer === 0 ? {} : { loadBalancer }),
    ...(ipFamilies === undefined || ipFamilies === 0 ? {} : { ipFamilies }),
    canonical,
    visibility,
    ...(fixed === 0
      ? {}
      : {
          fixedEndpoints: new Map(
            fixed.map(([workloadUid, own, status]) => [workloadUid, { workloadUid, ports: new Map(own), status }]),
          ),
        }),
  }
}
