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
  /** Endpoints written into a local file; they come on top of those derived from the workloads, by workload uid. */
  readonly fixedEndpoints?: ReadonlyMap<string, FixedEndpoint>
}

export interface FixedEndpoint {
  readonly workloadUid: string
  readonly ports: ReadonlyMap<number, number>
  readonly status: 'Healthy' | 'Unhealthy'
}

/** One backend of a service, healthy or not. */
export interface Endpoint {
  readonly workload: Workload
  /** Service port → target port, where the endpoint says so itself. */
  readonly ports: ReadonlyMap<number, number>
  readonly status: 'Healthy' | 'Unhealthy'
}

export type StringMatch =
  | { readonly kind: 'exact' | 'prefix' | 'suffix'; readonly value: string }
  | { readonly kind: 'presence' }

/** A block of addresses, ready to compare: an address of the family is inside when its bits, shifted right, equal `prefix`. */
export interface Cidr {
  readonly text: string
  readonly family: 4 | 6
  readonly length: number
  readonly shift: bigint
  readonly prefix: bigint
}

export interface ServiceAccountMatch {
  readonly namespace: string
  readonly serviceAccount: string
}

/** The attributes of one match: all types must match, within a type one entry must, of a `not…` list none may. */
export interface PolicyMatch {
  readonly namespaces: readonly StringMatch[]
  readonly notNamespaces: readonly StringMatch[]
  readonly principals: readonly StringMatch[]
  readonly notPrincipals: readonly StringMatch[]
  readonly serviceAccounts: readonly ServiceAccountMatch[]
  readonly notServiceAccounts: readonly ServiceAccountMatch[]
  readonly sourceIps: readonly Cidr[]
  readonly notSourceIps: readonly Cidr[]
  readonly destinationIps: readonly Cidr[]
  readonly notDestinationIps: readonly Cidr[]
  readonly destinationPorts: readonly number[]
  readonly notDestinationPorts: readonly number[]
}

export interface Policy {
  readonly name: string
  readonly namespace: string
  readonly scope: 'Global' | 'Namespace' | 'WorkloadSelector'
  readonly action: 'Allow' | 'Deny'
  readonly dryRun: boolean
  /** Why the policy could not be read; it then stands for the strictest policy of its action, so that an error never opens a door. */
  readonly rejected?: string
  /** A policy is the OR of its rules, a rule the AND of its clauses, a clause the OR of its matches. */
  readonly rules: readonly (readonly (readonly PolicyMatch[])[])[]
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
