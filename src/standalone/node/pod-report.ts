// Tells the API the status of one pod: what is known of its containers and sandbox, whenever it differs from what was last told.
import { resources } from '../../api/index.ts'
import type { NodeContext } from './node-context.ts'
import type { PodContainer } from './pod-container.ts'
import { type ContainerState, podStatus } from './status.ts'
import type { Steps } from './steps.ts'
import type { Pod } from './types.ts'

/** What is there of a pod. */
export interface PodFindings {
  readonly containers: ReadonlyMap<string, PodContainer>
  /** Names of the containers that wait for their next start. */
  readonly backingOff: Steps['backingOff'] | undefined
  readonly sandboxReady: boolean
  readonly podIPs: readonly string[]
  readonly startTime: string
}

export class PodReporter {
  readonly #context: NodeContext
  readonly #reported = Promise.withResolvers<void>()
  #lastStatus = ''

  constructor(context: NodeContext) {
    this.#context = context
  }

  /** Resolves when the API knows what this process found of the pod. */
  get reported(): Promise<void> {
    return this.#reported.promise
  }

  /** The API knows already. */
  nothingToAdd(): void {
    this.#reported.resolve()
  }

  async report(pod: Pod, steps: Steps, found: PodFindings): Promise<void> {
    const containers = new Map<string, ContainerState>()
    for (const [name, container] of found.containers) {
      containers.set(name, container.state(found.backingOff?.has(name) === true))
    }
    const deleting = pod.metadata.deletionTimestamp !== undefined
    const phase = deleting && steps.phase === 'Pending' ? 'Failed' : steps.phase
    const status = podStatus(
      pod,
      [...found.containers.values()].map((container) => container.planned),
      {
        phase,
        initialized: steps.initialized,
        sandboxReady: found.sandboxReady,
        hostIPs: this.#context.nodeIPs,
        podIPs: found.podIPs,
        startTime: found.startTime,
        containers,
      },
      timestamp(),
    )
    const text = JSON.stringify(status)
    if (text === this.#lastStatus) {
      this.#reported.resolve()
      return
    }
    const { name, namespace = '', uid } = pod.metadata
    const body = { metadata: { uid }, status }
    await this.#context.client.patch(
      resources.pods,
      { namespace, name },
      { kind: 'merge', body },
      { subresource: 'status' },
    )
    this.#lastStatus = text
    this.#reported.resolve()
  }
}

/** Now, to the second, as the API writes times. */
export function timestamp(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, 'Z')
}
