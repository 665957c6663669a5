// What is known of a connection when it is reported.
import type { Baggage } from '../decisions/index.ts'
import type { Identity, Service, SocketAddress, Workload } from '../model.ts'

export type Reporter = 'source' | 'destination'

/** Why a connection failed, as the label `response_flags` says it. */
export type ResponseFlag =
  | 'DENY'
  | 'CONNECT'
  | 'TLS_FAILURE'
  | 'H2_HANDSHAKE_FAILURE'
  | 'NETWORK_POLICY'
  | 'IDENTITY_ERROR'
  | 'CERT_REVOKED'

export interface ConnectionFacts {
  /** The side this proxy stands on: `source` for outbound connections, `destination` for inbound ones. */
  readonly reporter: Reporter
  readonly src: SocketAddress
  /** The TCP destination; of an HBONE connection the address of the tunnel's other end. */
  readonly dst: SocketAddress
  /** `:authority` of the CONNECT, HBONE only. */
  readonly hboneAuthority?: string
  /** True when both ends proved who they are. */
  readonly mutualTls: boolean
  readonly source?: KnownWorkload
  /** What the peer says of a source that is not known. */
  readonly sourceBaggage?: Baggage
  /** The verified client of an inbound connection. */
  readonly peerIdentity?: Identity
  readonly destination?: KnownWorkload
  /** What the far end of a double HBONE says of the real destination, and who it proved to be; replaces `destination`. */
  readonly remoteDestination?: { readonly baggage: Baggage; readonly identity?: Identity }
  /** The service the client meant. */
  readonly service?: Pick<Service, 'name' | 'namespace' | 'hostname'>
}

export type KnownWorkload = Pick<
  Workload,
  | 'name'
  | 'namespace'
  | 'serviceAccount'
  | 'trustDomain'
  | 'workloadName'
  | 'canonicalName'
  | 'canonicalRevision'
  | 'clusterId'
  | 'locality'
>

/** One end of a connection, from whatever is known of it. */
export interface Peer {
  readonly podName?: string
  readonly workloadName?: string
  readonly app?: string
  readonly canonicalService?: string
  readonly revision?: string
  readonly namespace?: string
  readonly clusterId?: string
  readonly region?: string
  readonly zone?: string
}

/** A known workload replaces everything baggage says. */
export function peerOf(workload: KnownWorkload | undefined, baggage: Baggage | undefined): Peer | undefined {
  if (workload !== undefined) {
    return {
      podName: workload.name,
      workloadName: workload.workloadName,
      app: workload.canonicalName,
      canonicalService: workload.canonicalName,
      revision: workload.canonicalRevision,
      namespace: workload.namespace,
      clusterId: workload.clusterId,
      region: workload.locality.region,
      zone: workload.locality.zone,
    }
  }
  if (baggage === undefined) return undefined
  const { workloadName, serviceName } = baggage
  return {
    ...baggage,
    ...(workloadName === undefined ? {} : { app: workloadName }),
    ...(serviceName === undefined ? {} : { podName: serviceName, canonicalService: serviceName }),
  }
}

export function sourcePeer(facts: ConnectionFacts): Peer | undefined {
  return peerOf(facts.source, facts.sourceBaggage)
}

export function destinationPeer(facts: ConnectionFacts): Peer | undefined {
  return facts.remoteDestination === undefined
    ? peerOf(facts.destination, undefined)
    : peerOf(undefined, facts.remoteDestination.baggage)
}

/** Only what TLS proved: our own identity on the way out, the peer's on the way in. */
export function sourceIdentity(facts: ConnectionFacts): Identity | undefined {
  if (!facts.mutualTls) return undefined
  return facts.reporter === 'source' ? facts.source : facts.peerIdentity
}

/** The identity of the destination as far as it is known, proven or not. */
export function destinationIdentity(facts: ConnectionFacts): Identity | undefined {
  return facts.remoteDestination === undefined ? facts.destination : facts.remoteDestination.identity
}
