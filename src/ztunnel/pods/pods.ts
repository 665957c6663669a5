// The pods of the node: one proxy each, started, kept, retried and stopped as the node agent says.
import { adoptNetworkNamespace, type NetworkNamespace } from '../../linux/index.ts'
import type { PodInfo } from '../model.ts'
import type { AgentMessage } from './zds-messages.ts'

/** The agent broke the protocol: who speaks so cannot be followed. */
export class ZdsProtocolError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ZdsProtocolError'
  }
}

/** What was started for a pod. */
export interface ServedPod {
  /** No new connections; resolves when those in progress have ended. */
  drain(): Promise<void>
  /** Cuts everything at once; resolves when nothing listens any more. */
  stop(reason: string): Promise<void>
}

export interface PodsOptions<P extends ServedPod> {
  /** Serves a pod. The namespace is closed when the pod is stopped: who needs it longer makes a descriptor of its own. */
  readonly start: (pod: PodInfo, namespace: NetworkNamespace) => Promise<P>
  /** Between attempts to start pods that could not be started. */
  readonly retryMs?: number
  /** Told after each change, and after each failed start with its error. */
  readonly onChange?: (change: PodChange) => void
}

export type PodChange =
  | { readonly kind: 'started' | 'stopped'; readonly uid: string; readonly pod: PodInfo }
  | { readonly kind: 'pending'; readonly uid: string; readonly pod: PodInfo; readonly error: string }

export interface PodState<P extends ServedPod = ServedPod> {
  readonly uid: string
  readonly pod: PodInfo
  readonly state: 'Up' | 'Pending'
  /** Absent while pending. */
  readonly served?: P
}

export interface Pods<P extends ServedPod = ServedPod> {
  /** A new connection of the agent: what an earlier one said about its snapshot and pending pods no longer counts. */
  beginStream(): void
  /** Carries out one message. Returns the error to answer with, if any. Rejects with a ZdsProtocolError. */
  handle(message: AgentMessage): Promise<string | undefined>
  /** The snapshot of the current connection is complete and nothing is pending. */
  readonly ready: boolean
  /** Calls the listener when a later attempt may have changed `ready`. Returns the function that ends it. */
  onRetry(listener: () => void): () => void
  list(): readonly PodState<P>[]
  /** Lets every pod's connections end. */
  drain(): Promise<void>
  stop(reason: string): Promise<void>
}

interface RunningPod<P extends ServedPod> {
  readonly pod: PodInfo
  readonly namespace: NetworkNamespace
  readonly served: P
}

const stoppedReason = 'connection closed due to connection drain'

export function createPods<P extends ServedPod>(options: PodsOptions<P>): Pods<P> {
  const { start, retryMs = 5_000, onChange = () => undefined } = options
  const running = new Map<string, RunningPod<P>>()
  const pending = new Map<string, { readonly pod: PodInfo; readonly namespace: NetworkNamespace }>()
  let snapshot = new Set<string>()
  let snapshotSent = false
  let retry: NodeJS.Timeout | undefined
  let retrying = false
  let turn: Promise<unknown> = Promise.resolve()
  const retryListeners = new Set<() => void>()
  let ended = false

  /** Starts and stops one thing at a time: a retry never runs into a message. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = turn.then(work)
    turn = result.catch(() => undefined)
    return result
  }

  async function stopPod(uid: string): Promise<void> {
    const found = running.get(uid)
    if (found === undefined) return
    running.delete(uid)
    await found.served.stop(stoppedReason)
    found.namespace[Symbol.dispose]()
    onChange({ kind: 'stopped', uid, pod: found.pod })
  }

  function forgetPending(uid: string): void {
    pending.get(uid)?.namespace[Symbol.dispose]()
    pending.delete(uid)
    if (pending.size === 0) stopRetrying()
  }

  function stopRetrying(): void {
    clearInterval(retry)
    retry = undefined
  }

  async function startPod(uid: string, pod: PodInfo, namespace: NetworkNamespace): Promise<string | undefined> {
    const present = running.get(uid)
    if (present !== undefined) {
      if (present.namespace.inode === namespace.inode && present.namespace.device === namespace.device) {
        namespace[Symbol.dispose]()
        forgetPending(uid)
        return undefined
      }
      await stopPod(uid)
    }
    try {
      const served = await start(pod, namespace)
      if (ended) {
        await served.stop(stoppedReason)
        namespace[Symbol.dispose]()
        return undefined
      }
      running.set(uid, { pod, namespace, served })
      if (pending.get(uid)?.namespace !== namespace) forgetPending(uid)
      pending.delete(uid)
      if (pending.size === 0) stopRetrying()
      onChange({ kind: 'started', uid, pod })
      return undefined
    } catch (error) {
      const text = `failure to start proxy : ${error instanceof Error ? error.message : String(error)}`
      if (pending.get(uid)?.namespace !== namespace) forgetPending(uid)
      if (ended) {
        namespace[Symbol.dispose]()
        return text
      }
      pending.set(uid, { pod, namespace })
      retry ??= setInterval(() => void retryPending(), retryMs)
      onChange({ kind: 'pending', uid, pod, error: text })
      return text
    }
  }

  /** Each in a turn of its own, so that a message has to wait for one at most, and no round while the one before goes on. */
  async function retryPending(): Promise<void> {
    if (retrying) return
    retrying = true
    for (const [uid, { pod, namespace }] of [...pending]) {
      await inTurn(async () => {
        if (pending.get(uid)?.namespace === namespace) await startPod(uid, pod, namespace)
      })
    }
    retrying = false
    for (const listener of retryListeners) listener()
  }

  async function carryOut(message: AgentMessage): Promise<string | undefined> {
    switch (message.kind) {
      case 'add': {
        const namespace = adoptNetworkNamespace(message.namespaceFd)
        if (message.pod === undefined) {
          namespace[Symbol.dispose]()
          throw new ZdsProtocolError('pod add received without workload info')
        }
        if (!snapshotSent) snapshot.add(message.uid)
        return startPod(message.uid, message.pod, namespace)
      }
      case 'keep':
        if (snapshotSent) throw new ZdsProtocolError('pod keep received after snapshot')
        snapshot.add(message.uid)
        return undefined
      case 'delete':
        forgetPending(message.uid)
        if (snapshotSent) await stopPod(message.uid)
        else snapshot.delete(message.uid)
        return undefined
      case 'snapshot-sent':
        if (snapshotSent) throw new ZdsProtocolError('pod snapshot received already')
        snapshotSent = true
        await Promise.all([...running.keys()].filter((uid) => !snapshot.has(uid)).map(stopPod))
        snapshot = new Set()
        return undefined
    }
  }

  const forgetAllPending = () => {
    for (const uid of [...pending.keys()]) forgetPending(uid)
  }

  return {
    beginStream() {
      snapshot = new Set()
      snapshotSent = false
      forgetAllPending()
    },
    handle: (message) => inTurn(() => carryOut(message)),
    get ready() {
      return snapshotSent && pending.size === 0
    },
    onRetry(listener) {
      retryListeners.add(listener)
      return () => void retryListeners.delete(listener)
    },
    list: () => [
      ...[...running].map(([uid, { pod, served }]) => ({ uid, pod, state: 'Up' as const, served })),
      ...[...pending]
        .filter(([uid]) => !running.has(uid))
        .map(([uid, { pod }]) => ({ uid, pod, state: 'Pending' as const })),
    ],
    async drain() {
      ended = true
      forgetAllPending()
      await Promise.all([...running.values()].map(({ served }) => served.drain()))
    },
    async stop(reason) {
      ended = true
      forgetAllPending()
      const all = [...running.values()]
      running.clear()
      await Promise.all(
        all.map(async ({ served, namespace }) => {
          await served.stop(reason)
          namespace[Symbol.dispose]()
        }),
      )
    },
  }
}
