// Pods of the suite's data as the CA sees them.
import { createPodIndex, type PodLookup } from '../../../src/ca/index.ts'
import { text } from './data.ts'

export function podsOf(value: unknown): PodLookup {
  const pods = Array.isArray(value) ? (value as readonly Readonly<Record<string, unknown>>[]) : []
  return createPodIndex(
    pods.map((pod) => ({
      name: text(pod.name),
      namespace: text(pod.namespace),
      serviceAccount: text(pod.serviceAccount),
      node: text(pod.node),
      uid: text(pod.uid),
      phase: text(pod.phase ?? 'Running'),
    })),
  )
}

export function kubernetesCallerOf(value: unknown) {
  const fields = value as Readonly<Record<string, unknown>>
  return {
    namespace: text(fields.namespace),
    serviceAccount: text(fields.serviceAccount),
    podName: text(fields.podName),
    podUid: text(fields.podUID),
  }
}
