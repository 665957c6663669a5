// The model between the inputs and the messages: services, who belongs to them, workloads.
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { workload } from '../../proto/index.ts'
import type { Attachment } from './waypoints/attachment.ts'

export type GatewayAddressInit = MessageInitShape<typeof workload.GatewayAddressSchema>
export type ServiceInit = MessageInitShape<typeof workload.ServiceSchema>

export interface SourceObject {
  readonly kind: 'Service' | 'ServiceEntry'
  readonly namespace: string
  readonly name: string
  /** RFC 3339; empty when not known. */
  readonly created: string
}

export interface ServicePort {
  readonly number: number
  readonly name: string
  readonly protocol: string
  /** A number (0: not declared, which means the port's own), or the name of a port of the workload. */
  readonly target: number | string
}

export interface VirtualAddress {
  readonly network: string
  readonly address: Uint8Array
  /** Prefix length, where it is not a single address. */
  readonly length?: number
}

/** A service as one object declares it, before other objects with the same host name are considered. */
export interface ServiceInfo {
  readonly cluster: string
  readonly source: SourceObject
  readonly namespace: string
  readonly hostname: string
  readonly addresses: readonly VirtualAddress[]
  readonly ports: readonly ServicePort[]
  readonly appProtocols: readonly workload.AppProtocol[]
  readonly subjectAltNames: readonly string[]
  readonly ipFamilies: workload.IPFamilies
  readonly loadBalancing: MessageInitShape<typeof workload.LoadBalancingSchema> | undefined
  readonly selector: Readonly<Record<string, string>> | undefined
  readonly visibility: 'PUBLIC' | 'NAMESPACE'
  readonly scope: 'LOCAL' | 'GLOBAL'
  readonly attachment: Attachment
}

/** A service that is really served. */
export interface PublishedService {
  readonly info: ServiceInfo
  readonly canonical: boolean
}

/** What workloads need to know of a service to join it. */
export interface Membership {
  readonly cluster: string
  readonly namespace: string
  /** `<namespace>/<hostname>` */
  readonly service: string
  readonly kind: 'Service' | 'ServiceEntry'
  readonly selector: Readonly<Record<string, string>> | undefined
  readonly ports: readonly ServicePort[]
}

export interface WorkloadInfo {
  readonly cluster: string
  readonly message: workload.Workload
}

export const serviceKey = (namespace: string, hostname: string): string => `${namespace}/${hostname}`

/** Orders texts as their UTF-16 units do: the same on every machine. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
