// What the workloads of all sources have in common.
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { workload } from '../../../proto/index.ts'
import type { GatewayAddressInit } from '../model.ts'
import type { Attachment } from '../waypoints/attachment.ts'
import type { InboundBinding } from '../waypoints/waypoint.ts'
import type { PortPair } from './ports.ts'

export type WorkloadInit = Exclude<MessageInitShape<typeof workload.WorkloadSchema>, workload.Workload>

/** What the surroundings of a workload add to what its own object says. */
export interface WorkloadSurroundings {
  readonly network: string
  /** As on the wire: empty for `cluster.local`. */
  readonly trustDomain: string
  readonly networkGateway: GatewayAddressInit | undefined
  /** By service key. */
  readonly services: ReadonlyMap<string, readonly PortPair[]>
  readonly policies: readonly string[]
  readonly attachment: Attachment
  /** Set where the workload is an instance of a waypoint with an inbound binding. */
  readonly binding: InboundBinding | undefined
}

export function workloadMessage(own: WorkloadInit, surroundings: WorkloadSurroundings): workload.Workload {
  const { network, trustDomain, networkGateway, attachment, binding } = surroundings
  return create(workload.WorkloadSchema, {
    ...own,
    network,
    trustDomain,
    ...(networkGateway === undefined ? {} : { networkGateway }),
    services: portLists(surroundings.services),
    authorizationPolicies: [...surroundings.policies],
    ...(attachment.kind === 'bound' ? { waypoint: attachment.waypoint.address } : {}),
    ...(binding === undefined
      ? {}
      : { applicationTunnel: { protocol: workload.ApplicationTunnel_Protocol[binding.protocol], port: binding.port } }),
  })
}

/** Keys in order, so that equal content has equal bytes. */
export function portLists(services: ReadonlyMap<string, readonly PortPair[]>): Record<string, workload.PortList> {
  return Object.fromEntries(
    [...services.keys()]
      .sort()
      .map((key) => [key, create(workload.PortListSchema, { ports: [...(services.get(key) ?? [])] })]),
  )
}

/** How peers reach a workload, by its labels and annotations. */
export function tunnelOf({
  labels,
  annotations,
}: {
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly annotations?: Readonly<Record<string, string>> | undefined
}): Pick<WorkloadInit, 'tunnelProtocol' | 'nativeTunnel'> {
  const announced = labels?.['networking.istio.io/tunnel']?.split(',').map((word) => word.trim())
  if (announced?.includes('http')) return { tunnelProtocol: workload.TunnelProtocol.HBONE, nativeTunnel: true }
  // Written by the node agent only once redirection works.
  if (annotations?.['ambient.istio.io/redirection'] === 'enabled') {
    return { tunnelProtocol: workload.TunnelProtocol.HBONE }
  }
  return {}
}

export interface Locality {
  readonly region: string
  readonly zone: string
  readonly subzone: string
}

export function localityOfText(text: string | undefined): { locality?: Locality } {
  if (text === undefined || text === '') return {}
  const [region = '', zone = '', subzone = ''] = text.split('/')
  return { locality: { region, zone, subzone } }
}
