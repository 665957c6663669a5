// The pods of one worker: their proxies by the number the main thread gave them.
import { duplicateNetworkNamespace, type NetworkNamespace } from '../../linux/index.ts'
import {
  type DataPlaneOptions,
  type DataPlaneServices,
  type LiveConnection,
  type PodProxy,
  startPodProxy,
} from '../dataplane/index.ts'
import type { PodOrder } from './messages.ts'

export interface WorkerPods {
  /** Rejects, with nothing left behind, when a listener cannot be bound. */
  start(order: PodOrder): Promise<void>
  drain(id: number): Promise<void>
  /** Of a pod that is still starting too: it is then stopped as soon as it has. */
  stop(id: number, reason: string): void
  stopAll(reason: string): void
  connections(): ReadonlyMap<number, readonly LiveConnection[]>
}

interface Entry {
  proxy: PodProxy | undefined
  readonly namespace: NetworkNamespace | undefined
}

/** `own`: for the proxy's own workload. */
export function createWorkerPods(
  options: { readonly pods: DataPlaneOptions; readonly own: DataPlaneOptions },
  services: DataPlaneServices,
): WorkerPods {
  const entries = new Map<number, Entry>()

  function stop(id: number, reason: string): void {
    const entry = entries.get(id)
    if (entry === undefined) return
    entries.delete(id)
    entry.proxy?.stop(reason)
    entry.namespace?.[Symbol.dispose]()
  }

  return {
    async start({ id, pod, namespace: given, listeners }) {
      // A worker that stood still may come to this when the pod is gone, and the descriptor's number another pod's.
      const namespace = given === undefined ? undefined : duplicateNetworkNamespace(given)
      const entry: Entry = { proxy: undefined, namespace }
      entries.set(id, entry)
      try {
        const proxy = await startPodProxy({
          pod,
          services,
          listeners,
          options: listeners === 'hbone' ? options.own : options.pods,
          ...(namespace === undefined ? {} : { namespace }),
        })
        if (entries.get(id) === entry) entry.proxy = proxy
        else proxy.stop('the pod was stopped before it was served')
      } catch (error) {
        entries.delete(id)
        namespace?.[Symbol.dispose]()
        throw error
      }
    },
    async drain(id) {
      await entries.get(id)?.proxy?.drain()
    },
    stop,
    stopAll(reason) {
      for (const id of [...entries.keys()]) stop(id, reason)
    },
    connections: () =>
      new Map([...entries].flatMap(([id, { proxy }]) => (proxy === undefined ? [] : [[id, proxy.connections()]]))),
  }
}
