// Everything that passes between the main thread and a worker.
import type { HeapProfiler, Profiler } from 'node:inspector/promises'
import type { WorkloadCertificate } from '../../ca/client/index.ts'
import type { OpenNamespace } from '../../linux/index.ts'
import type { RevocationSource } from '../certificates/index.ts'
import type { LiveConnection } from '../dataplane/index.ts'
import type { PodInfo } from '../model.ts'
import type { MeshPublication } from '../state/follower.ts'
import type { CallMessage } from './calls.ts'

/** What is to be served for a pod, or for the proxy's own workload. */
export interface PodOrder {
  /** By which this pod's proxy is named afterwards, the same in every worker. */
  readonly id: number
  readonly pod: PodInfo
  /** The pod's network namespace, of which the worker makes a descriptor of its own. Absent: the process's own namespace. */
  readonly namespace?: OpenNamespace
  /** `hbone`: only the listener for tunnels, unmarked, as for the proxy's own workload. */
  readonly listeners: 'all' | 'hbone'
}

/** What the main thread asks of a worker. */
export type WorkerCall =
  | { readonly kind: 'start-pod'; readonly order: PodOrder }
  /** Resolves when the connections in progress have ended. */
  | { readonly kind: 'drain-pod'; readonly id: number }
  | { readonly kind: 'stop-pod'; readonly id: number; readonly reason: string }
  | { readonly kind: 'connections' }
  /** Answers on the readiness endpoint; the worker takes over the descriptor of the listening socket. */
  | { readonly kind: 'serve-readiness'; readonly fd: number }
  | { readonly kind: 'cpu-profile'; readonly seconds: number; readonly frequency: number }
  /** Without an interval: no more. */
  | { readonly kind: 'heap-sampling'; readonly intervalBytes: number | undefined }
  | { readonly kind: 'heap-profile' }
  /** Stops everything; resolves when nothing is left to log. */
  | { readonly kind: 'close'; readonly reason: string }

export interface WorkerResults extends Record<WorkerCall['kind'], unknown> {
  readonly 'start-pod': undefined
  readonly 'drain-pod': undefined
  readonly 'stop-pod': undefined
  /** By the pod's id. */
  readonly connections: ReadonlyMap<number, readonly LiveConnection[]>
  readonly 'serve-readiness': undefined
  readonly 'cpu-profile': Profiler.Profile
  readonly 'heap-sampling': undefined
  readonly 'heap-profile': HeapProfiler.SamplingHeapProfile
  readonly close: undefined
}

/** What a worker asks of the main thread. */
export type MainCall =
  /** Of a SPIFFE id. */
  | { readonly kind: 'certificate'; readonly identity: string }
  /** On-demand mode: resolves when the mesh shows what the key is, see `OnDemandAddresses.ask`. */
  | { readonly kind: 'address'; readonly key: string; readonly timeoutMs: number }

export interface MainResults extends Record<MainCall['kind'], unknown> {
  readonly certificate: WorkloadCertificate
  readonly address: undefined
}

/** A certificate for new connections, or that there is none any more. */
export type CertificateNews =
  | { readonly kind: 'certificate'; readonly identity: string; readonly certificate: WorkloadCertificate }
  | { readonly kind: 'no-certificate'; readonly identity: string }

export type ToWorker =
  | CallMessage<WorkerCall>
  | CertificateNews
  | { readonly kind: 'mesh'; readonly publication: MeshPublication }
  /** The names of the tasks without which the process is not ready. */
  | { readonly kind: 'pending'; readonly tasks: readonly string[] }
  | { readonly kind: 'revocations'; readonly source: RevocationSource }

export type ToMain =
  | CallMessage<MainCall>
  /** Its modules are loaded, and it takes calls. */
  | { readonly kind: 'started' }
