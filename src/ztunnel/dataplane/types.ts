// What the data plane is given: its settings, the mesh, certificates, and whom it tells about connections.
import type { X509Certificate } from 'node:crypto'
import type { Http2Options, TlsCredentials } from '../../hbone/index.ts'
import type { KeepaliveOptions, NetworkNamespace } from '../../linux/index.ts'
import type { Scope } from '../../observability/index.ts'
import type { TraceContext } from '../decisions/index.ts'
import type { Identity, PodInfo, SocketAddress, Workload } from '../model.ts'
import type { OnDemandAddresses } from '../on-demand/index.ts'
import type { MeshFollower } from '../state/index.ts'
import type { ConnectionReports, ZtunnelMetrics } from '../telemetry/index.ts'

export interface DataPlaneOptions {
  readonly network: string
  /** Of the identity in which the pod is served; absent: what the mesh says of its workload. */
  readonly trustDomain?: string
  /** False: pods get nothing but DNS. */
  readonly proxy: boolean
  readonly ports: {
    readonly outbound: number
    readonly plaintext: number
    readonly hbone: number
    readonly dns: number
    /** Absent: no socks5 listener. */
    readonly socks5?: number
  }
  /** Where DNS is answered in each pod; absent: on loopback. */
  readonly dnsAddress?: string
  readonly ipv6: boolean
  /** SO_MARK of every socket in a pod. */
  readonly mark?: number
  /** Whether listeners are transparent, and with them whether the client's address is kept towards the application. */
  readonly transparent: 'required' | 'attempt' | 'never'
  readonly reusePort: boolean
  readonly keepalive?: KeepaliveOptions
  readonly http2: Http2Options
  readonly pool: { readonly maxTunnelsPerConnection: number; readonly unusedTimeoutMs: number }
  readonly localhostAppTunnel: boolean
  /** Read baggage of requests and send our own in answers. */
  readonly baggage: boolean
  readonly allowTls12: boolean
  /** Key exchange groups, where a compliance policy names them. */
  readonly groups?: string
  /** At which level policy decisions are logged. */
  readonly policyLogLevel: 'debug' | 'info'
  readonly connectTimeoutMs: number
  readonly localWorkloadTimeoutMs: number
}

/** Answers DNS queries of a pod; null sends nothing. */
export interface DnsAnswerer {
  answer(query: Uint8Array, client: DnsClient): Promise<Uint8Array | null>
}

export interface DnsClient {
  readonly pod: PodInfo
  readonly from: SocketAddress
  readonly protocol: 'udp' | 'tcp'
  readonly namespace?: NetworkNamespace
}

export interface DataPlaneServices {
  readonly state: MeshFollower
  /** A trace context for a connection that brings none. */
  newTrace(): TraceContext
  /** Where the mesh is known in parts only: asks for the rest. */
  readonly onDemand?: Pick<OnDemandAddresses, 'ask'>
  /** Credentials of an identity (a SPIFFE id). The same certificate is the same value. */
  credentials(identity: Identity): Promise<TlsCredentials>
  readonly revocations?: {
    /** Why a peer's chain is refused although it verifies; undefined when it is not. */
    check(chain: readonly X509Certificate[]): string | undefined
    /** Calls the listener when what is revoked has changed. Returns the function that ends it. */
    subscribe(listener: () => void): () => void
  }
  /** An address of a workload known by host name only. */
  resolveHostname(workload: Workload, family: 4 | 6, source: Workload): Promise<string>
  readonly reports: ConnectionReports
  readonly metrics: Pick<ZtunnelMetrics, 'socketsOpen' | 'crlRejections'>
  readonly dns?: DnsAnswerer
  readonly log: Scope
  /** Policy decisions. */
  readonly rbacLog: Scope
  readonly random: () => number
}

/** A connection in progress, for the admin dump. */
export interface LiveConnection {
  readonly direction: 'inbound' | 'outbound'
  readonly from: SocketAddress
  /** Inbound: the host the client asked for, where it said so. */
  readonly originalDestination: string | undefined
  readonly actualDestination: SocketAddress
  readonly protocol: 'TCP' | 'HBONE' | 'DOUBLEHBONE'
}
