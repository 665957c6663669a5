// What all pods of a node share.
import type { KubeClient } from '../../kube/index.ts'
import type { EventRecorder } from './events.ts'
import type { ResolverConfig } from './name-files.ts'
import type { ObjectCache } from './object-cache.ts'
import type { SandboxSettings } from './sandbox.ts'
import type { TokenSource } from './tokens.ts'
import type { Service } from './types.ts'

export interface NodeContext {
  readonly client: KubeClient
  readonly nodeName: string
  readonly nodeIPs: readonly string[]
  /** Holds a directory for each pod. */
  readonly podsDirectory: string
  readonly sandbox: SandboxSettings
  readonly cgroupRoot: string | undefined
  readonly cluster: { readonly dnsIP: string; readonly domain: string }
  readonly hostResolver: () => ResolverConfig
  readonly resources: { readonly cpus: number; readonly memoryBytes: number }
  readonly events: EventRecorder
  readonly objects: ObjectCache
  readonly tokens: TokenSource
  readonly services: () => readonly Service[]
  /** PATH of containers that do not set it. */
  readonly path: string
  readonly log: (message: string) => void
}
