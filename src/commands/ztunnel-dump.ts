// The dump of a node proxy as the commands read it, whichever proxy it is from.

export interface ZtunnelDump {
  readonly workloads?: ListOf<DumpedWorkload>
  readonly services?: ListOf<DumpedService>
  readonly policies?: ListOf<DumpedPolicy>
  readonly certificates?: ListOf<DumpedCertificates>
  readonly workloadState?: Readonly<Record<string, DumpedPod>>
}

/** Older proxies give mappings where newer ones give lists. */
export type ListOf<T> = readonly T[] | Readonly<Record<string, T>>

export interface DumpedGateway {
  readonly destination?: string
}

export interface DumpedWorkload {
  readonly uid?: string
  readonly name: string
  readonly namespace: string
  readonly workloadIps?: readonly string[]
  readonly hostname?: string
  readonly node?: string
  readonly protocol?: string
  readonly status?: string
  readonly waypoint?: DumpedGateway | null
}

export interface DumpedService {
  readonly name: string
  readonly namespace: string
  readonly hostname: string
  readonly vips?: readonly string[]
  readonly waypoint?: DumpedGateway | null
  readonly endpoints?: ListOf<{ readonly workloadUid?: string }>
}

export interface DumpedPolicy {
  readonly name: string
  readonly namespace: string
  readonly action?: string
  readonly scope?: string
}

export interface DumpedCertificate {
  readonly serialNumber?: string
  readonly validFrom?: string
  readonly expirationTime?: string
}

export interface DumpedCertificates {
  readonly identity: string
  readonly state?: string
  readonly certChain?: readonly DumpedCertificate[]
  readonly rootCerts?: readonly DumpedCertificate[]
}

export interface DumpedConnection {
  readonly src?: string
  readonly originalDst?: string | null
  readonly actualDst?: string
  readonly protocol?: string
}

export interface DumpedPod {
  readonly state?: string
  readonly info?: { readonly name?: string; readonly namespace?: string; readonly serviceAccount?: string }
  readonly connections?: {
    readonly inbound?: readonly DumpedConnection[]
    readonly outbound?: readonly DumpedConnection[]
  }
}

export function listOf<T>(items: ListOf<T> | undefined): readonly T[] {
  if (items === undefined) return []
  return Array.isArray(items) ? (items as readonly T[]) : Object.values(items as Readonly<Record<string, T>>)
}
