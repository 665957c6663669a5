// What the node agent does about a change of a pod or a namespace: a pure function of the caches and the event.
import type { Namespace, Pod } from 'kubernetes-types/core/v1.js'
import { type EnablementSelector, isEligible, isNodeProxy, redirectionAnnotation } from '../eligibility.ts'

export interface EnrollmentSettings {
  readonly selectors: readonly EnablementSelector[]
  readonly excludeNamespaces: readonly string[]
  readonly systemNamespace: string
}

export type PodAction =
  | { readonly kind: 'enroll' }
  /** `ips` are the addresses to take out of the host set. */
  | { readonly kind: 'unenroll'; readonly isDelete: boolean; readonly ips: readonly string[] }
  | { readonly kind: 'host-set-add'; readonly ips: readonly string[] }
  | { readonly kind: 'none'; readonly reason: string }

export type PodEvent =
  | { readonly kind: 'updated'; readonly old?: Pod; readonly pod: Pod }
  | { readonly kind: 'deleted'; readonly pod: Pod }

export function podIps(pod: Pod | undefined): string[] {
  const ips = pod?.status?.podIPs?.map(({ ip }) => ip).filter((ip) => ip !== undefined && ip !== '') ?? []
  return ips.length > 0 || !pod?.status?.podIP ? (ips as string[]) : [pod.status.podIP]
}

export function isTerminal(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
}

export function isEnrolled(pod: Pod): boolean {
  return pod.metadata?.annotations?.[redirectionAnnotation] === 'enabled'
}

/** Rules are in force but the proxy has not said that it serves the pod. */
export function isPartial(pod: Pod): boolean {
  return pod.metadata?.annotations?.[redirectionAnnotation] === 'pending'
}

/**
 * @param namespace the pod's namespace as cached now; undefined when it is unknown.
 */
export function decidePod(event: PodEvent, namespace: Namespace | undefined, settings: EnrollmentSettings): PodAction {
  const { pod } = event
  if (isNodeProxy(pod, settings.systemNamespace)) return none('the node proxy is never captured')
  const eligible = isEligible(pod, namespace?.metadata?.labels ?? {}, settings.selectors)
  const captured = isEnrolled(pod) || isPartial(pod)
  if (event.kind === 'deleted') {
    if (captured || eligible) return { kind: 'unenroll', isDelete: true, ips: podIps(pod) }
    return none('it was not captured')
  }
  const previous = event.old ?? pod
  if (isTerminal(pod)) {
    // The last status often has no addresses any more: those of the object before are taken.
    if (captured)
      return { kind: 'unenroll', isDelete: true, ips: podIps(previous).length > 0 ? podIps(previous) : podIps(pod) }
    return none('it has ended')
  }
  if (namespace === undefined) return none(`namespace ${pod.metadata?.namespace} is not known`)
  const wanted = eligible && !settings.excludeNamespaces.includes(pod.metadata?.namespace ?? '')
  const ips = podIps(pod)
  if (isEnrolled(pod) && wanted) {
    const changed = ips.join() !== podIps(event.old).join()
    return ips.length > 0 && event.old !== undefined && changed
      ? { kind: 'host-set-add', ips }
      : none('it is captured already')
  }
  if (!wanted) return captured ? { kind: 'unenroll', isDelete: false, ips } : none('it is not to be captured')
  if (ips.length === 0) return none('it has no address yet')
  return { kind: 'enroll' }
}

function none(reason: string): PodAction {
  return { kind: 'none', reason }
}

/** Pods that the proxy is told of before anything else when the agent starts. */
export function belongsInSnapshot(pod: Pod, settings: EnrollmentSettings): boolean {
  return isEnrolled(pod) && !isTerminal(pod) && !isNodeProxy(pod, settings.systemNamespace)
}
