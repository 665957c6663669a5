// The questions the data path asks, and the answers. Every decision is a pure function of the state and the request; the
// data path only carries it out. `reason` is for people: logs, the admin dump and `lateen explain`.
import type { Identity, Service, SocketAddress, Workload } from '../model.ts'
import type { Baggage } from './baggage.ts'

/** The proxy's own facts that routing needs. */
export interface OutboundOptions {
  /** The network of this node. */
  readonly network: string
  /** 15008. */
  readonly hbonePort: number
  /** The proxy's own listeners: refused as loopback destinations. */
  readonly illegalPorts: ReadonlySet<number>
  /** Uniform in [0, 1); injected so that tests can decide. */
  readonly random: () => number
}

export interface InboundOptions {
  readonly network: string
  readonly illegalPorts: ReadonlySet<number>
  /** Dial an application that wants the PROXY protocol on loopback. */
  readonly localhostAppTunnel: boolean
  /** Whether request baggage is read. */
  readonly readBaggage: boolean
}

/** Where to connect: an address, or a host name that is resolved when the connection is made. */
export type Target =
  | { readonly kind: 'address'; readonly address: SocketAddress }
  | { readonly kind: 'hostname'; readonly workload: Workload; readonly port: number; readonly family: 4 | 6 }

export interface OutboundRequest {
  /** The pod that owns the listener. */
  readonly source: Workload
  /** The client's address, as the kernel reports it. */
  readonly from: SocketAddress
  /** The original destination. */
  readonly to: SocketAddress
}

interface Attribution {
  /** What logs and metrics name as destination. */
  readonly destinationWorkload?: Workload
  readonly service?: Service
  readonly reason: string
}

export type OutboundDecision =
  | ({ readonly kind: 'tcp'; readonly target: Target } & Attribution)
  | ({
      readonly kind: 'hbone'
      readonly target: Target
      /** `:authority` of the CONNECT. */
      readonly authority: string
      /** Set when the target is a host name: the authority is then the resolved address with this port. */
      readonly authorityPort?: number
      /** The peer must present one of these (SPIFFE ids), compared exactly. */
      readonly expectedIdentities: readonly string[]
    } & Attribution)
  | ({
      readonly kind: 'double-hbone'
      readonly target: Target
      readonly authority: string
      readonly expectedIdentities: readonly string[]
      /** The same for the inner tunnel; an empty list never verifies. */
      readonly finalIdentities: readonly string[]
    } & Attribution)
  | { readonly kind: 'refuse'; readonly error: string }

export interface InboundRequest {
  readonly method: string
  readonly authority: string
  /** The workload owning the network namespace. */
  readonly local: Workload
  /** The TLS connection's client address and the address it was made to. */
  readonly from: SocketAddress
  readonly connectionTo: SocketAddress
  readonly peerIdentity?: Identity
  readonly headers: Readonly<Record<string, string | undefined>>
}

export type InboundDecision =
  | {
      readonly kind: 'connect'
      /** The next hop as policies see it. */
      readonly upstream: SocketAddress
      /** The address really dialled (loopback for an application tunnel). */
      readonly connectTo: SocketAddress
      /** Destination and peer to announce in a PROXY protocol header, if the application wants one. */
      readonly proxyProtocol?: { readonly destination: SocketAddress; readonly peerIdentity?: string }
      /** Whether the client's address may be used as source towards the application. */
      readonly preserveSource: boolean
      readonly sourceWorkload?: Workload
      readonly service?: Service
      readonly fromGateway: boolean
      /** What the peer says of the source workload; used where the workload itself is not known. */
      readonly baggage?: Baggage
      readonly reason: string
    }
  | { readonly kind: 'reject'; readonly status: 400 | 401 | 503; readonly error: string }

export interface PlaintextRequest {
  readonly local: Workload
  readonly from: SocketAddress
  /** The original destination. */
  readonly to: SocketAddress
}

export type PlaintextDecision =
  | {
      readonly kind: 'connect'
      readonly upstream: SocketAddress
      readonly preserveSource: boolean
      readonly sourceWorkload?: Workload
      readonly service?: Service
      readonly reason: string
    }
  | { readonly kind: 'reject'; readonly error: string }

/** A connection as policies see it. */
export interface AuthorizationRequest {
  readonly destinationWorkload: Workload
  readonly source: SocketAddress
  readonly destination: SocketAddress
  readonly identity?: Identity
}

export interface AuthorizationDecision {
  readonly allowed: boolean
  /** `<namespace>/<name>` of the policy that decided, where one did. */
  readonly policy?: string
  /** As users grep it: `explicitly denied by: ns/name`, `allow policies exist, but none allowed`, … */
  readonly reason: string
  /** The log line of the decision: `deny policy match`, `allow policy match`, `no allow policies, allow`, `no allow policies matched`. */
  readonly message: string
  /** Policies the workload names that are not known; they count as absent and deserve a warning. */
  readonly missingPolicies: readonly string[]
  /** What dry-run policies would have said; one log line each. */
  readonly dryRun: readonly { readonly policy?: string; readonly message: string }[]
}
