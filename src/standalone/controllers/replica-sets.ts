// ReplicaSet: keeps the wanted number of pods of one template.
import { resources } from '../../api/index.ts'
import type { Cluster } from './cluster.ts'
import { deleteExactly, own, ownersOf, startController, writeStatus } from './controller.ts'
import { recordEvent } from './events.ts'
import {
  type Condition,
  isActive,
  isAvailable,
  isReady,
  isTerminating,
  keyOf,
  type Pod,
  podOf,
  type ReplicaSet,
  withCondition,
} from './objects.ts'

/** At most this many pods are created or deleted in one pass, so that a server that refuses them is not flooded. */
const burst = 100

export function startReplicaSets(cluster: Cluster): AsyncDisposable {
  return startController(cluster, {
    name: 'replica-sets',
    sources: [own(cluster.replicaSets), ownersOf(cluster.pods, 'ReplicaSet')],
    work: (key) => reconcile(cluster, key),
  })
}

async function reconcile(cluster: Cluster, key: string): Promise<number | undefined> {
  const set = cluster.replicaSets.get(keyOf(key))
  if (set?.metadata.uid === undefined || set.spec === undefined) return undefined
  const pods = cluster.ownedPods.of(set.metadata.uid).filter(isActive)
  let failure: unknown
  if (!isTerminating(set))
    failure = await scale(cluster, set, pods).catch((error: unknown) => error ?? new Error('failed'))
  const { minReadySeconds = 0 } = set.spec
  await writeStatus(
    cluster,
    resources.replicaSets,
    set,
    statusOf(set, cluster.ownedPods.of(set.metadata.uid).filter(isActive), failure),
  )
  if (failure !== undefined) {
    const message = `Error creating: ${failure instanceof Error ? failure.message : String(failure)}`
    await recordEvent(cluster, set, { type: 'Warning', reason: 'FailedCreate', message, component })
    throw failure
  }
  const isWaiting = minReadySeconds > 0 && pods.some((pod) => isReady(pod) && !isAvailable(pod, minReadySeconds))
  return isWaiting ? 1000 : undefined
}

const component = 'replicaset-controller'

function tell(cluster: Cluster, set: ReplicaSet, reason: string, message: string): Promise<void> {
  return recordEvent(cluster, set, { type: 'Normal', reason, message, component })
}

async function scale(cluster: Cluster, set: ReplicaSet, pods: readonly Pod[]): Promise<undefined> {
  const { replicas = 1, template } = set.spec ?? {}
  const missing = replicas - pods.length
  if (missing > 0 && template !== undefined) {
    const create = async (): Promise<void> => {
      const pod = await cluster.client.create(resources.pods, podOf(set, template))
      cluster.ownedPods.created(pod)
      await tell(cluster, set, 'SuccessfulCreate', `Created pod: ${pod.metadata.name}`)
    }
    // The first one alone: when it is refused, so would be the others.
    await create()
    await Promise.all(Array.from({ length: Math.min(missing, burst) - 1 }, create))
  }
  const surplus = pods.toSorted(lessUsefulFirst).slice(0, Math.min(Math.max(0, -missing), burst))
  await Promise.all(
    surplus.map(async (pod) => {
      await deleteExactly(cluster, resources.pods, pod)
      cluster.ownedPods.deleted(pod)
      await tell(cluster, set, 'SuccessfulDelete', `Deleted pod: ${pod.metadata.name}`)
    }),
  )
  return undefined
}

function rank(pod: Pod): number {
  const isAssigned = (pod.spec?.nodeName ?? '') !== ''
  const phase = pod.status?.phase === 'Running' ? 1 : 0
  return (isAssigned ? 4 : 0) + phase * 2 + (isReady(pod) ? 1 : 0)
}

/** Unassigned before assigned, pending before running, unready before ready, young before old. */
export function lessUsefulFirst(a: Pod, b: Pod): number {
  const difference = rank(a) - rank(b)
  if (difference !== 0) return difference
  const [first = '', second = ''] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp]
  return first === second ? 0 : first > second ? -1 : 1
}

function statusOf(set: ReplicaSet, pods: readonly Pod[], failure: unknown): NonNullable<ReplicaSet['status']> {
  const templateLabels = Object.entries(set.spec?.template?.metadata?.labels ?? {})
  const { minReadySeconds } = set.spec ?? {}
  const fullyLabeled = pods.filter((pod) =>
    templateLabels.every(([name, value]) => pod.metadata.labels?.[name] === value),
  )
  const others = ((set.status?.conditions ?? []) as Condition[]).filter(({ type }) => type !== 'ReplicaFailure')
  const conditions =
    failure === undefined
      ? others
      : withCondition((set.status?.conditions ?? []) as Condition[], {
          type: 'ReplicaFailure',
          status: 'True',
          reason: 'FailedCreate',
          message: failure instanceof Error ? failure.message : String(failure),
        })
  const some = (name: string, count: number): Record<string, number> => (count === 0 ? {} : { [name]: count })
  return {
    replicas: pods.length,
    ...some('fullyLabeledReplicas', fullyLabeled.length),
    ...some('readyReplicas', pods.filter(isReady).length),
    ...some('availableReplicas', pods.filter((pod) => isAvailable(pod, minReadySeconds)).length),
    ...(set.metadata.generation === undefined ? {} : { observedGeneration: set.metadata.generation }),
    ...(conditions.length > 0
      ? { conditions: conditions as NonNullable<NonNullable<ReplicaSet['status']>['conditions']> }
      : {}),
  }
}
