// What a delta xDS client needs to be told, and what its owner can ask of it.
import type { Scope } from '../../observability/index.ts'
import type { DeltaUpdate, DeltaVerdict } from '../types.ts'
import type { StreamEnd } from './recycling.ts'

export interface DeltaClientOptions {
  /** `host:port` of the control plane. */
  readonly address: string
  readonly transport:
    | {
        readonly kind: 'tls'
        /** PEM of the roots the server is verified against; asked for on each connection. */
        readonly roots: () => string | Promise<string>
        /** The name to find in the server's certificate when it isn't the host of `address`. */
        readonly serverName?: string
        /** A second name, with either of which the server's certificate is accepted. */
        readonly alternativeName?: string
      }
    | { readonly kind: 'plaintext' }
  /** Request headers (authorization, clusterid …); asked for on each connection, so a token is read anew. */
  readonly headers: () => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>
  readonly node: { readonly id: string; readonly metadata: Readonly<Record<string, unknown>> }
  /** In the order in which they are asked for. An on-demand type starts empty and gets what `subscribe` names. */
  readonly types: readonly {
    readonly typeUrl: string
    readonly onDemand?: boolean
    /** Type of the messages, where it isn't that of the resource type. */
    readonly bodyType?: string
  }[]
  /** Puts one response into force, synchronously, and names what it rejects. Updates come before removals inside a response. */
  readonly onUpdate: (update: DeltaUpdate) => DeltaVerdict
  /** Told of the end of each stream: how it ended, and whether that is how streams are recycled. */
  readonly onStreamEnd?: (end: StreamEnd['kind'], recycled: boolean) => void
  readonly log: Scope
  readonly times?: Partial<DeltaClientTimes>
  /** How large the report of what is held may be, in bytes; 3 MiB, as servers take messages of 4. */
  readonly mostReportedBytes?: number
}

export interface DeltaClientTimes {
  readonly connectTimeoutMs: number
  /** The first wait after a failure is twice this. */
  readonly leastRetryMs: number
  readonly mostRetryMs: number
  /** After the last response of a new stream: what was not reported to it and not named since is gone by then. */
  readonly unreportedMs: number
  /** How long a control plane may leave what it was sent unread; its stream is ended then. */
  readonly unreadMs: number
}

export interface DeltaClient extends AsyncDisposable {
  /** Resolves when every wildcard type has had its first accepted response. */
  readonly synced: Promise<void>
  /** True while a stream is open and has answered. */
  readonly connected: boolean
  /** Asks for a resource of an on-demand type, on this stream and on those after it. Asking twice sends once. */
  subscribe(typeUrl: string, name: string): void
  unsubscribe(typeUrl: string, name: string): void
}
