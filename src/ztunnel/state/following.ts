// Following the mesh: listeners, and waiting for the workload of a pod.
import type { PodInfo, Workload } from '../model.ts'
import { StateError } from './errors.ts'
import type { MeshFollower, MeshSignal } from './follower.ts'
import { failLater, type ListenerFailure, tell } from './tell.ts'
import type { MeshView } from './view.ts'

export interface Following extends Pick<MeshFollower, 'onChange' | 'waitForLocalWorkload'> {
  /** A push is in place. */
  signal(signal: MeshSignal): void
}

export function createFollowing(
  view: Pick<MeshView, 'localWorkload'>,
  onFailure: ListenerFailure = failLater,
): Following {
  const listeners = new Set<(signal: MeshSignal) => void>()
  function onChange(listener: (signal: MeshSignal) => void): () => void {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  return {
    signal: (signal) => tell(listeners, signal, onFailure),
    onChange,
    async waitForLocalWorkload(pod, { timeoutMs = 5000, signal } = {}) {
      const present = view.localWorkload(pod)
      if (present !== undefined) return present
      signal?.throwIfAborted()
      return await new Promise<Workload>((resolve, reject) => {
        const end = (): void => {
          clearTimeout(timer)
          unsubscribe()
          signal?.removeEventListener('abort', abort)
        }
        const timer = setTimeout(() => {
          end()
          reject(new StateError('UNKNOWN_LOCAL_WORKLOAD', unknownLocalWorkload(pod)))
        }, timeoutMs)
        const unsubscribe = onChange(({ workloads }) => {
          const found = workloads ? view.localWorkload(pod) : undefined
          if (found === undefined) return
          end()
          resolve(found)
        })
        const abort = (): void => {
          end()
          reject(new StateError('ABORTED', unknownLocalWorkload(pod), { cause: signal?.reason }))
        }
        signal?.addEventListener('abort', abort, { once: true })
      })
    },
  }
}

/** The text of a failed wait for the workload of a pod. */
export function unknownLocalWorkload(pod: PodInfo): string {
  return `failed to fetch information about local workload: ${pod.serviceAccount}.${pod.namespace} (${pod.name})`
}
