// What keeps the pods of applied manifests from being ready: pods that are not made yet count as well as those that are not ready.
import { type KubeObject, type LabelSelector, matchesLabelSelector } from '../api/index.ts'
import { unreadiness } from './cluster-wait.ts'
import type { Pod } from './node/types.ts'

const replicated: ReadonlySet<string> = new Set(['Deployment', 'ReplicaSet', 'StatefulSet'])

/** In a few words each; empty when all is ready. `applied` are the objects as the API server has them. */
export function awaitedPods(applied: readonly KubeObject[], pods: readonly Pod[]): readonly string[] {
  const namespaces = new Set(applied.map(namespaceOf))
  const unready = pods.filter((pod) => namespaces.has(namespaceOf(pod))).map(unreadiness)
  return [...applied.map((object) => missingPods(object, pods)), ...unready].filter((why) => why !== undefined)
}

function missingPods(object: KubeObject, pods: readonly Pod[]): string | undefined {
  if (!replicated.has(object.kind ?? '')) return undefined
  const { replicas = 1, selector } = (object.spec ?? {}) as { replicas?: number; selector?: LabelSelector }
  if (selector === undefined) return undefined
  const made = pods.filter(
    (pod) =>
      namespaceOf(pod) === namespaceOf(object) &&
      pod.metadata.deletionTimestamp === undefined &&
      matchesLabelSelector(selector, pod.metadata.labels),
  ).length
  return made < replicas
    ? `${namespaceOf(object)}/${object.metadata.name}* (${made} of ${replicas} created)`
    : undefined
}

const namespaceOf = ({ metadata }: KubeObject): string => metadata.namespace ?? 'default'
