// The effective configuration of the node proxy, as one value.
import type { LogFilter } from '../../observability/index.ts'
import type { PodInfo } from '../model.ts'
import type { LocalContent } from '../state/index.ts'

/** Where trusted roots come from. A file is read again on every connection. */
export type RootSource =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'system' }
  | { readonly kind: 'pem'; readonly pem: string }

export type TokenSource =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'literal'; readonly token: string }

/** A gRPC server of the control plane. */
export interface ControlPlaneEndpoint {
  /** With scheme: `https://host:port`. */
  readonly address: string
  readonly roots: RootSource
  /** A second DNS name accepted in the server's certificate. */
  readonly altHostname?: string
  readonly headers: Readonly<Record<string, string>>
}

export interface ZtunnelConfig {
  readonly mode: 'shared' | 'dedicated'
  /** Dedicated mode: the one workload served. */
  readonly workload?: PodInfo
  /** The proxy's own pod, when its name, namespace and service account are all given. */
  readonly self?: PodInfo
  readonly proxyEnabled: boolean
  readonly dnsProxyEnabled: boolean
  readonly network: string
  readonly node?: string
  readonly clusterId: string
  readonly clusterDomain: string
  /** Of the proxy's own identity; absent: what the control plane says of its pod. */
  readonly trustDomain?: string
  readonly podName: string
  readonly podNamespace: string
  readonly instanceIp: string
  readonly adminPort: number
  readonly statsPort: number
  readonly readinessPort: number
  readonly outboundPort: number
  readonly inboundPlaintextPort: number
  readonly inboundHbonePort: number
  readonly socks5Port?: number
  /** `localhost` stands for 127.0.0.1 and, where it is enabled, ::1. */
  readonly dnsProxyAddress: { readonly host: string; readonly port: number }
  /** Ports of our own listeners, never a destination. */
  readonly illegalPorts: ReadonlySet<number>
  readonly proxyMetadata: Readonly<Record<string, string>>
  /** Node metadata of the xDS stream besides the above. */
  readonly jsonMetadata: Readonly<Record<string, unknown>>
  /** Absent when switched off. */
  readonly xds?: ControlPlaneEndpoint
  readonly xdsOnDemand: boolean
  readonly ca?: ControlPlaneEndpoint
  readonly authToken?: TokenSource
  readonly secretTtlMs: number
  readonly localContent?: LocalContent
  readonly inpodSocket: string
  readonly inpodPortReuse: boolean
  readonly packetMark?: number
  /** Source address preservation: must succeed, never tried, or (absent) tried. */
  readonly originalSource?: boolean
  readonly ipv6Enabled: boolean
  readonly keepalive?: { readonly timeMs: number; readonly intervalMs: number; readonly retries: number }
  readonly userTimeoutMs?: number
  readonly http2: {
    readonly streamWindow: number
    readonly connectionWindow: number
    readonly frameSize: number
  }
  readonly pool: { readonly maxStreamsPerConnection: number; readonly unusedReleaseMs: number }
  readonly drainDeadlineMs: number
  readonly workerThreads: number
  readonly preferredServiceNamespace?: string
  readonly localhostAppTunnel: boolean
  readonly responseBaggage: boolean
  readonly crlPath?: string
  readonly tls12Enabled: boolean
  readonly compliancePolicy?: 'pqc'
  readonly policyLoggingAtInfo: boolean
  readonly logFilter: LogFilter
  readonly logFormat: 'plain' | 'json'
  readonly istioVersion: string
  /** Odd inputs that do not stop the start; to be logged. */
  readonly warnings: readonly string[]
}
