// ServiceEntries as services of the mesh: one a host.
import type { ServiceEntry } from '../../../api/index.ts'
import { workload } from '../../../proto/index.ts'
import { masked, parseIp, parsePrefix } from '../addresses.ts'
import type { ServiceInfo, VirtualAddress } from '../model.ts'
import type { Attachment } from '../waypoints/attachment.ts'
import { appProtocolOfWord } from './app-protocol.ts'
import { loadBalancingOf, passThrough, trafficDistributionAnnotation } from './load-balancing.ts'

export interface ServiceEntrySurroundings {
  readonly cluster: string
  readonly network: string
  readonly visibility: 'PUBLIC' | 'NAMESPACE'
  readonly attachment: Attachment
  readonly allocateAddresses: boolean
  readonly namespaceTrafficDistribution: () => string | undefined
}

/** One service a distinct host; none where an address of the entry cannot be read. */
export function serviceEntryServices(entry: ServiceEntry, surroundings: ServiceEntrySurroundings): ServiceInfo[] {
  const { metadata, spec } = entry
  const namespace = metadata.namespace ?? ''
  const ports = spec?.ports ?? []
  const selector = spec?.workloadSelector?.labels
  const services: ServiceInfo[] = []
  for (const hostname of new Set(spec?.hosts ?? [])) {
    const addresses = addressesOf(entry, hostname, surroundings)
    if (addresses === undefined) return []
    services.push({
      cluster: surroundings.cluster,
      source: { kind: 'ServiceEntry', namespace, name: metadata.name, created: metadata.creationTimestamp ?? '' },
      namespace,
      hostname,
      addresses,
      ports: ports.map((port) => ({
        number: port.number,
        name: port.name,
        protocol: port.protocol?.toUpperCase() === 'UDP' ? 'UDP' : 'TCP',
        target: port.targetPort === undefined || port.targetPort === 0 ? port.number : port.targetPort,
      })),
      appProtocols: ports.map((port) => appProtocolOfWord(port.protocol)),
      subjectAltNames: spec?.subjectAltNames ?? [],
      ipFamilies: workload.IPFamilies.AUTOMATIC,
      loadBalancing:
        resolutionOf(entry) === 'NONE'
          ? passThrough()
          : loadBalancingOf({
              annotation: metadata.annotations?.[trafficDistributionAnnotation],
              namespaceAnnotation: surroundings.namespaceTrafficDistribution,
            }),
      selector: selector === undefined || Object.keys(selector).length === 0 ? undefined : selector,
      visibility: surroundings.visibility,
      scope: 'LOCAL',
      attachment: surroundings.attachment,
    })
  }
  return services
}

export function resolutionOf(entry: ServiceEntry): string {
  return entry.spec?.resolution ?? 'NONE'
}

/** Whether the address allocator gives this entry addresses. */
export function takesAllocatedAddresses(entry: ServiceEntry): boolean {
  return (
    resolutionOf(entry) !== 'NONE' &&
    entry.metadata.labels?.['networking.istio.io/enable-autoallocate-ip']?.toLowerCase() !== 'false' &&
    (entry.spec?.addresses ?? []).length === 0
  )
}

/** Whether the address allocator gives this host of an eligible entry addresses. */
export function hostTakesAllocatedAddresses(entry: ServiceEntry, host: string): boolean {
  return !host.startsWith('*') || resolutionOf(entry) === 'DYNAMIC_DNS'
}

function addressesOf(
  entry: ServiceEntry,
  host: string,
  { network, allocateAddresses }: ServiceEntrySurroundings,
): VirtualAddress[] | undefined {
  const addresses: VirtualAddress[] = []
  for (const text of entry.spec?.addresses ?? []) {
    const prefix = parsePrefix(text)
    if (prefix === undefined) return undefined
    const single = prefix.length === prefix.address.length * 8
    addresses.push({ network, address: masked(prefix), ...(single ? {} : { length: prefix.length }) })
  }
  if (!allocateAddresses || !takesAllocatedAddresses(entry) || !hostTakesAllocatedAddresses(entry, host))
    return addresses
  for (const { host: owner, value } of entry.status?.addresses ?? []) {
    const address = owner === host ? parseIp(value) : undefined
    if (address !== undefined) addresses.push({ network, address })
  }
  return addresses
}
