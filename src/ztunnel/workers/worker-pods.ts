// The pods of one worker: their proxies by the number the main thread gave them.
import type { Socket } from 'node:net'
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
  /** Resolves when the peers of tunnels have been told, also those of pods stopped before. */
  stopAll(reason: string): Promise<void>
  connections(): ReadonlyMap<number, readonly LiveConnection[]>
  /** Whether the pod is served here, and, unless `alsoDraining`, takes new connections. */
  serves(id: number, alsoDraining: boolean): boolean
  /** Serves a tunnel connection of a pod that is served here, paused and unread. */
  takeTunnel(id: number, socket: Socket): void
}

interface Entry {
  proxy: PodProxy | undefined
  isDraining: boolean
  readonly namespace: NetworkNamespace | undefined
}

/** `own`: for the proxy's own workload. `placeTunnel`: which worker serves a connection. */
export function createWorkerPods(
  options: { readonly pods: DataPlaneOptions; readonly own: DataPlaneOptions },
  services: DataPlaneServices,
  placeTunnel: (id: number, socket: Socket) => 'here' | Promise<void>,
): WorkerPods {
  const entries = new Map<number, Entry>()
  /** Of proxies that serve nobody any more. */
  const farewells = new Set<Promise<void>>()

  function end(proxy: PodProxy, reason: string): void {
    const farewell = proxy.stop(reason)
    farewells.add(farewell)
    void farewell.then(() => farewells.delete(farewell))
  }

  function stop(id: number, reason: string): void {
    const entry = entries.get(id)
    if (entry === undefined) return
    entries.delete(id)
    if (entry.proxy !== undefined) end(entry.proxy, reason)
    entry.namespace?.[Symbol.dispose]()
  }

  return {
    async start({ id, pod, namespace: given, listeners }) {
      // A worker that stood still may come to this when the pod is gone, and the descriptor's number another pod's.
      const namespace = given === undefined ? undefined : duplicateNetworkNamespace(given)
      const entry: Entry = { proxy: undefined, isDraining: false, namespace }
      entries.set(id, entry)
      try {
        const chosen = listeners === 'hbone' ? options.own : options.pods
        const proxy = await startPodProxy({
          pod,
          services,
          listeners,
          options: chosen,
          ...(chosen.reusePort ? { placeTunnel: (socket: Socket) => placeTunnel(id, socket) } : {}),
          ...(namespace === undefined ? {} : { namespace }),
        })
        if (entries.get(id) === entry) entry.proxy = proxy
        else end(proxy, 'the pod was stopped before it was served')
      } catch (error) {
        entries.delete(id)
        namespace?.[Symbol.dispose]()
        throw error
      }
    },
    async drain(id) {
      const entry = entries.get(id)
      if (entry === undefined) return
      entry.isDraining = true
      await entry.proxy?.drain()
    },
    stop,
    async stopAll(reason) {
      for (const id of [...entries.keys()]) stop(id, reason)
      await Promise.all(farewells)
    },
    serves(id, alsoDraining) {
      const entry = entries.get(id)
      return entry?.proxy !== undefined && (alsoDraining || !entry.isDraining)
    },
    takeTunnel: (id, socket) => entries.get(id)?.proxy?.takeTunnel(socket),
    connections: () =>
      new Map([...entries].flatMap(([id, { proxy }]) => (proxy === undefined ? [] : [[id, proxy.connections()]]))),
  }
}
