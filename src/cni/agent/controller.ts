// Turns watch events into enrolments: keeps the newest pods and namespaces, decides, has the decision carried out, and repeats what failed.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Namespace, Pod } from 'kubernetes-types/core/v1.js'
import { isAmbientNamespace } from '../eligibility.ts'
import {
  belongsInSnapshot,
  decidePod,
  type EnrollmentSettings,
  isTerminal,
  type PodAction,
  type PodEvent,
  podIps,
} from './decide.ts'
import { createGate } from './gate.ts'
import { createPodQueue } from './pod-queue.ts'
import { createRetryLimit } from './retry-limit.ts'

/** Carries decisions out. Each method may be called again for the same pod and resolves when the pod is as wanted. */
export interface Enrollment {
  enroll(pod: Pod): Promise<void>
  unenroll(pod: Pod, isDelete: boolean, ips: readonly string[]): Promise<void>
  addToHostSet(pod: Pod, ips: readonly string[]): Promise<void>
  /** Whether anything is kept of a pod with this UID, captured or on the way to it. */
  knows(uid: string): boolean
  /** Takes over the pods that an earlier agent enrolled, before any proxy is served. */
  restore(pods: readonly Pod[]): Promise<void>
}

export interface ControllerOptions {
  readonly settings: EnrollmentSettings
  readonly enrollment: Enrollment
  readonly log: (level: 'debug' | 'info' | 'warn', message: string) => void
  /** Delay before the given attempt (1 = first repetition). */
  readonly retryDelayMs?: (attempt: number) => number
}

export interface EnrollmentController extends AsyncDisposable {
  /** Takes over the present state; call once. Events that come before it has ended are handled after it. */
  start(pods: readonly Pod[], namespaces: readonly Namespace[]): Promise<void>
  podAdded(pod: Pod): void
  podUpdated(old: Pod, pod: Pod): void
  podDeleted(pod: Pod): void
  namespaceChanged(namespace: Namespace): void
  namespaceDeleted(name: string): void
  /** The newest pod and namespace, for the plugin's server. */
  find(namespace: string, name: string): { pod: Pod; namespace: Namespace } | undefined
  /** Resolves when no work is queued or running. */
  idle(): Promise<void>
}

const keyOf = (pod: Pod): string => `${pod.metadata?.namespace}/${pod.metadata?.name}`

/** An enrolment is some dozens of short processes: a namespace of many pods must not take the node over. */
const podsAtOnce = 8
const retries = { perSecond: 10, burst: 100 } as const

export function createEnrollmentController(options: ControllerOptions): EnrollmentController {
  const { settings, enrollment, log } = options
  const retryDelayMs = options.retryDelayMs ?? ((attempt) => Math.min(5 * 2 ** (attempt - 1), 5_000))
  const pods = new Map<string, Pod>()
  const namespaces = new Map<string, Namespace>()
  const gate = createGate(podsAtOnce)
  const retryTurnMs = createRetryLimit(retries)

  const carryOut = async (action: PodAction, pod: Pod): Promise<void> => {
    switch (action.kind) {
      case 'enroll':
        return enrollment.enroll(pod)
      case 'unenroll':
        return enrollment.unenroll(pod, action.isDelete, action.ips)
      case 'host-set-add':
        return enrollment.addToHostSet(pod, action.ips)
      case 'none':
        log('debug', `pod ${keyOf(pod)}: nothing to do: ${action.reason}`)
    }
  }

  const decide = (event: PodEvent): PodAction => {
    const { pod } = event
    const decided = decidePod(event, namespaces.get(pod.metadata?.namespace ?? ''), settings)
    // Captured by the plugin, and gone before its annotation was seen.
    const isLeft = event.kind === 'deleted' || isTerminal(pod)
    return decided.kind === 'none' && isLeft && enrollment.knows(pod.metadata?.uid ?? '')
      ? { kind: 'unenroll', isDelete: true, ips: podIps(pod) }
      : decided
  }

  /** The newest state decides, not the event's: much may have happened since it was queued. Undefined when its pod is gone. */
  const current = (key: string, event: PodEvent): PodEvent | undefined => {
    if (event.kind === 'deleted') return event
    const pod = pods.get(key)
    return pod === undefined || pod.metadata?.uid !== event.pod.metadata?.uid ? undefined : { ...event, pod }
  }

  /** Resolves with the delay before the next attempt; undefined when there is none to make. */
  const attempt = async (key: string, event: PodEvent, count: number): Promise<number | undefined> => {
    const action = decide(event)
    try {
      await carryOut(action, event.pod)
      if (action.kind !== 'none') log('info', `pod ${key}: ${action.kind} done`)
      return undefined
    } catch (error) {
      const failed = `pod ${key}: ${action.kind} failed`
      if (isFinal(error)) {
        log('warn', `${failed}: ${(error as Error).message}`)
        return undefined
      }
      const delayMs = Math.round(Math.max(retryDelayMs(count), retryTurnMs()))
      log('warn', `${failed}, next attempt in ${delayMs} ms: ${(error as Error).message}`)
      return delayMs
    }
  }

  const queue = createPodQueue(async (key, event, isOver) => {
    for (let count = 1; !isOver.aborted; count += 1) {
      const delayMs = await gate(async () => {
        const now = current(key, event)
        return now === undefined ? undefined : attempt(key, now, count)
      })
      if (delayMs === undefined) return
      await sleep(delayMs, undefined, { signal: isOver }).catch(() => undefined)
    }
  })
  const handle = (event: PodEvent): void => queue.push(keyOf(event.pod), event)

  const evaluateNamespace = (name: string): void => {
    for (const pod of pods.values()) {
      if (pod.metadata?.namespace === name) handle({ kind: 'updated', pod })
    }
  }

  return {
    start: async (presentPods, presentNamespaces) => {
      for (const pod of presentPods) pods.set(keyOf(pod), pod)
      for (const namespace of presentNamespaces) namespaces.set(namespace.metadata?.name ?? '', namespace)
      await enrollment.restore(presentPods.filter((pod) => belongsInSnapshot(pod, settings)))
      for (const name of namespaces.keys()) evaluateNamespace(name)
      queue.start()
    },
    podAdded: (pod) => {
      // New pods come through the plugin, old ones through their namespace.
      pods.set(keyOf(pod), pod)
    },
    podUpdated: (old, pod) => {
      pods.set(keyOf(pod), pod)
      handle({ kind: 'updated', old, pod })
    },
    podDeleted: (pod) => {
      if (pods.get(keyOf(pod))?.metadata?.uid === pod.metadata?.uid) pods.delete(keyOf(pod))
      handle({ kind: 'deleted', pod })
    },
    namespaceChanged: (namespace) => {
      const name = namespace.metadata?.name ?? ''
      const before = namespaces.get(name)
      namespaces.set(name, namespace)
      const ambient = (of: Namespace | undefined): boolean =>
        isAmbientNamespace(of?.metadata?.labels ?? {}, settings.selectors)
      if (before === undefined || ambient(before) !== ambient(namespace)) evaluateNamespace(name)
    },
    namespaceDeleted: (name) => void namespaces.delete(name),
    find: (namespace, name) => {
      const [pod, of] = [pods.get(`${namespace}/${name}`), namespaces.get(namespace)]
      return pod === undefined || of === undefined ? undefined : { pod, namespace: of }
    },
    idle: queue.idle,
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  }
}

/** An error that repeating does not mend carries `retryable: false`. */
function isFinal(error: unknown): boolean {
  return (error as { retryable?: boolean }).retryable === false
}
