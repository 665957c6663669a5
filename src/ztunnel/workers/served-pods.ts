// Pods served by the workers: by all of them where listeners can share their ports, else each pod by one.

import type { NetworkNamespace, OpenNamespace } from '../../linux/index.ts'
import type { LiveConnection } from '../dataplane/index.ts'
import type { PodInfo } from '../model.ts'
import { CallError } from './errors.ts'
import type { PodOrder } from './messages.ts'
import type { WorkerThread } from './worker-thread.ts'

/** The proxy of one pod, on the workers that serve it. */
export interface WorkerPod {
  readonly id: number
  /** No new connections; tunnel peers are told; resolves when the connections in progress have ended. */
  drain(): Promise<void>
  /** Cuts everything at once; resolves when nothing listens any more. A worker that stands still is not waited for long. */
  stop(reason: string): Promise<void>
}

export interface PodToServe {
  readonly pod: PodInfo
  readonly namespace?: NetworkNamespace
  readonly listeners: PodOrder['listeners']
}

export interface LiveConnections {
  readonly byPod: ReadonlyMap<number, readonly LiveConnection[]>
  /** Workers that did not answer in time, whose connections are missing. */
  readonly silent: readonly number[]
}

export interface ServedPods {
  /** Binds the pod's listeners on every worker that is to serve it. Rejects, with nothing left behind, when one of them cannot. */
  start(pod: PodToServe): Promise<WorkerPod>
  connections(): Promise<LiveConnections>
}

export interface ServedPodsOptions {
  readonly workers: readonly Pick<WorkerThread, 'index' | 'call'>[]
  /** Whether a port can be listened on by several workers. */
  readonly sharePorts: boolean
  /** The workers that stand still now, by index: they are not waited for long. */
  readonly stuck?: () => readonly number[]
  /** Below the five seconds in which the node agent wants an answer. */
  readonly startTimeoutMs?: number
  readonly stopTimeoutMs?: number
  readonly listTimeoutMs?: number
}

/** What one that stands still is given to go on, for each pod that it should take up. */
const stuckTimeoutMs = 3_000

export function createServedPods(options: ServedPodsOptions): ServedPods {
  const { workers, sharePorts, startTimeoutMs = 4_000, stopTimeoutMs = 2_000, listTimeoutMs = 1_000 } = options
  const { stuck = () => [] } = options
  const podsOf = new Map(workers.map((worker) => [worker, 0]))
  let lastId = 0

  const count = (serving: readonly (typeof workers)[number][], change: 1 | -1): void => {
    for (const worker of serving) podsOf.set(worker, (podsOf.get(worker) ?? 0) + change)
  }

  function chooseWorkers(): typeof workers {
    if (sharePorts) return workers
    const still = stuck()
    const running = [...podsOf].filter(([{ index }]) => !still.includes(index))
    const [least] = (running.length === 0 ? [...podsOf] : running).sort(([, a], [, b]) => a - b)
    return least === undefined ? [] : [least[0]]
  }

  return {
    async start({ pod, namespace, listeners }) {
      lastId += 1
      const id = lastId
      const order: PodOrder = {
        id,
        pod,
        listeners,
        ...(namespace === undefined ? {} : { namespace: nameOf(namespace) }),
      }
      const serving = chooseWorkers()
      const still = stuck()
      count(serving, 1)
      let isStopped = false
      const stop = async (reason: string): Promise<void> => {
        if (isStopped) return
        isStopped = true
        count(serving, -1)
        const stops = serving.map((worker) =>
          worker.call({ kind: 'stop-pod', id, reason }, { timeoutMs: stopTimeoutMs }),
        )
        const still = stuck()
        // One that stands still is told as well, and does it when it goes on.
        const settled = stops.map((stop) => stop.catch(() => undefined))
        await Promise.all(settled.filter((_, at) => !still.includes(serving[at]?.index ?? -1)))
      }
      const starts = serving.map((worker) =>
        worker
          .call(
            { kind: 'start-pod', order },
            { timeoutMs: still.includes(worker.index) ? stuckTimeoutMs : startTimeoutMs },
          )
          .catch((error: unknown) => {
            if (!(error instanceof CallError) || error.code !== 'TIMEOUT') throw error
            throw new CallError(error.code, `worker ${worker.index}: ${error.message}`, { cause: error })
          }),
      )
      const failure = (await Promise.allSettled(starts)).find((one) => one.status === 'rejected')
      if (failure !== undefined) {
        await stop('the pod is not served')
        throw failure.reason
      }
      return {
        id,
        async drain() {
          await Promise.all(serving.map((worker) => worker.call({ kind: 'drain-pod', id })))
        },
        stop,
      }
    },
    async connections() {
      const byPod = new Map<number, LiveConnection[]>()
      const silent: number[] = []
      const lists = workers.map(async (worker) => {
        try {
          const list = await worker.call({ kind: 'connections' }, { timeoutMs: listTimeoutMs })
          for (const [id, connections] of list) byPod.set(id, [...(byPod.get(id) ?? []), ...connections])
        } catch (error) {
          if (!(error instanceof CallError)) throw error
          silent.push(worker.index)
        }
      })
      await Promise.all(lists)
      return { byPod, silent: silent.sort((a, b) => a - b) }
    },
  }
}

/** Without what cannot be posted. */
const nameOf = ({ fd, inode, device }: NetworkNamespace): OpenNamespace => ({ fd, inode, device })
