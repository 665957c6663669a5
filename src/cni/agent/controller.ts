// Turns watch events into enrolments: keeps the newest pods and namespaces, decides, has the decision carried out, and repeats what failed.
import type { Namespace, Pod } from 'kubernetes-types/core/v1.js'
import { isAmbientNamespace } from '../eligibility.ts'
import { belongsInSnapshot, decidePod, type EnrollmentSettings, type PodAction, type PodEvent } from './decide.ts'

/** Carries decisions out. Each method may be called again for the same pod and resolves when the pod is as wanted. */
export interface Enrollment {
  enroll(pod: Pod): Promise<void>
  unenroll(pod: Pod, isDelete: boolean, ips: readonly string[]): Promise<void>
  addToHostSet(pod: Pod, ips: readonly string[]): Promise<void>
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
  /** Takes over the present state; call once, before any event. */
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

export function createEnrollmentController(options: ControllerOptions): EnrollmentController {
  const { settings, enrollment, log } = options
  const retryDelayMs = options.retryDelayMs ?? ((attempt) => Math.min(5 * 2 ** (attempt - 1), 5_000))
  const pods = new Map<string, Pod>()
  const namespaces = new Map<string, Namespace>()
  const running = new Map<string, Promise<void>>()
  const timers = new Map<NodeJS.Timeout, () => void>()
  let closed = false

  const wait = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(() => {
        timers.delete(timer)
        resolve()
      }, ms)
      timers.set(timer, resolve)
    })

  /** Work of one pod runs one after the other. */
  const queue = (key: string, work: () => Promise<void>): void => {
    const before = running.get(key) ?? Promise.resolve()
    const after = before.then(work).finally(() => {
      if (running.get(key) === after) running.delete(key)
    })
    running.set(key, after)
  }

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

  const handle = (event: PodEvent): void => {
    const key = keyOf(event.pod)
    queue(key, async () => {
      for (let attempt = 1; !closed; attempt += 1) {
        // The newest state decides, not the event's: much may have happened since it was queued.
        const current = event.kind === 'updated' ? pods.get(key) : event.pod
        if (current === undefined || (event.kind === 'updated' && current.metadata?.uid !== event.pod.metadata?.uid))
          return
        const now: PodEvent = event.kind === 'updated' ? { ...event, pod: current } : event
        const namespace = namespaces.get(current.metadata?.namespace ?? '')
        const action = decidePod(now, namespace, settings)
        try {
          await carryOut(action, current)
          if (action.kind !== 'none') log('info', `pod ${key}: ${action.kind} done`)
          return
        } catch (error) {
          if (isFinal(error)) {
            log('warn', `pod ${key}: ${action.kind} failed: ${(error as Error).message}`)
            return
          }
          const delay = retryDelayMs(attempt)
          log('warn', `pod ${key}: ${action.kind} failed, next attempt in ${delay} ms: ${(error as Error).message}`)
          await wait(delay)
        }
      }
    })
  }

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
    idle: async () => {
      while (running.size > 0) await Promise.all(running.values())
    },
    [Symbol.asyncDispose]: async () => {
      closed = true
      for (const [timer, resolve] of timers) {
        clearTimeout(timer)
        resolve()
      }
      timers.clear()
      await Promise.all(running.values())
    },
  }
}

/** An error that repeating does not mend carries `retryable: false`. */
function isFinal(error: unknown): boolean {
  return (error as { retryable?: boolean }).retryable === false
}
