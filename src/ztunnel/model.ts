// The node proxy's view of the mesh: workloads, services and policies, immutable, with addresses as canonical text.

export interface NetworkAddress {
  readonly network: string
  readonly ip: string
}

export interface SocketAddress {
  readonly ip: string
  readonly port: number
}

export interface NamespacedHostname {
  readonly namespace: string
  readonly hostname: string
}

export interface GatewayAddress {
  readonly destination:
    | { readonly kind: 'address'; readonly address: NetworkAddress }
    | { readonly kind: 'hostname'; readonly hostname: NamespacedHostname }
  readonly hbonePort: number
}

export interface Locality {
  readonly region: string
  readonly zone: string
  readonly subzone: string
}

export type Scope = 'Region' | 'Zone' | 'Subzone' | 'Node' | 'Cluster' | 'Network'

export interface Workload {
  readonly uid: string
  readonly name: string
  readonly namespace: string
  readonly addresses: readonly string[]
  readonly hostname: string
  readonly network: string
  readonly networkMode: 'Standard' | 'HostNetwork'
  readonly protocol: 'TCP' | 'HBONE'
  readonly nativeTunnel: boolean
  readonly trustDomain: string
  readonly serviceAccount: string
  readonly node: string
  readonly clusterId: string
  readonly waypoint?: GatewayAddress
  readonly networkGateway?: GatewayAddress
  readonly applicationTunnel?: { readonly protocol: 'NONE' | 'PROXY'; readonly port?: number }
  readonly canonicalName: string
  readonly canonicalRevision: string
  readonly workloadName: string
  readonly workloadType: string
  readonly locality: Locality
  readonly capacity: number
  readonly status: 'Healthy' | 'Unhealthy'
  /** Names (`<namespace>/<name>`) of the policies bound to it by selector. */
  readonly authorizationPolicies: readonly string[]
  /** `<namespace>/<hostname>` → service port → target port. */
  readonly services: ReadonlyMap<string, ReadonlyMap<number, number>>
}

export interface Service {
  readonly name: string
  readonly namespace: string
  readonly hostname: string
  readonly vips: readonly NetworkAddress[]
  readonly cidrVips: readonly { readonly network: string; readonly cidr: string }[]
  /** Service port → target port; 0 = named port, known only at the endpoint. */
  readonly ports: ReadonlyMap<number, number>
  readonly subjectAltNames: readonly string[]
  readonly waypoint?: GatewayAddress
  readonly weightedWaypoints: readonly { readonly destination: GatewayAddress; readonly weight: number }[]
  readonly loadBalancer?: {
    readonly mode: 'Standard' | 'Strict' | 'Failover' | 'Passthrough'
    readonly routingPreferences: readonly Scope[]
    readonly healthPolicy: 'OnlyHealthy' | 'AllowAll'
  }
  readonly ipFamilies?: 'Dual' | 'IPv4' | 'IPv6'
  readonly canonical: boolean
  readonly visibility: 'Public' | 'Namespace'
}

/** `spiffe://<trustDomain>/ns/<namespace>/sa/<serviceAccount>` in parts. */
export interface Identity {
  readonly trustDomain: string
  readonly namespace: string
  readonly serviceAccount: string
}

/** The pod a set of listeners belongs to, as the node agent names it. */
export interface PodInfo {
  readonly name: string
  readonly namespace: string
  readonly serviceAccount: string
}
