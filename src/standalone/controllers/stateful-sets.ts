// StatefulSet: numbered pods, started in order and stopped in reverse; newer templates from the last to the first.
import { createHash } from 'node:crypto'
import { resources } from '../../api/index.ts'
import type { Cluster } from './cluster.ts'
import { createPod, deleteExactly, own, ownersOf, startController, writeStatus } from './controller.ts'
import { isActive, isAvailable, isReady, isTerminating, keyOf, type Pod, podOf, type StatefulSet } from './objects.ts'

const hashLabel = 'controller-revision-hash'

export function startStatefulSets(cluster: Cluster): AsyncDisposable {
  return startController(cluster, {
    name: 'stateful-sets',
    sources: [own(cluster.statefulSets), ownersOf(cluster.pods, 'StatefulSet')],
    work: (key) => reconcile(cluster, key),
  })
}

async function reconcile(cluster: Cluster, key: string): Promise<number | undefined> {
  const set = cluster.statefulSets.get(keyOf(key))
  if (set?.metadata.uid === undefined || set.spec === undefined || isTerminating(set)) return undefined
  const revision = revisionOf(set)
  await step(cluster, set, revision)
  const pods = cluster.ownedPods.of(set.metadata.uid)
  await writeStatus(cluster, resources.statefulSets, set, statusOf(set, pods, revision))
  const { minReadySeconds = 0 } = set.spec
  const isWaiting = minReadySeconds > 0 && pods.some((pod) => isReady(pod) && !isAvailable(pod, minReadySeconds))
  return isWaiting ? 1000 : undefined
}

function revisionOf(set: StatefulSet): string {
  const hash = createHash('sha256').update(JSON.stringify(set.spec?.template)).digest('hex').slice(0, 10)
  return `${set.metadata.name}-${hash}`
}

function ordinalOf(pod: Pod): number {
  return Number(/-(\d+)$/.exec(pod.metadata.name)?.[1] ?? -1)
}

/** Creates, deletes or replaces the next pods; ordered sets wait for one before they go on to the next. */
async function step(cluster: Cluster, set: StatefulSet, revision: string): Promise<void> {
  const { replicas = 1, podManagementPolicy, minReadySeconds, ordinals } = set.spec ?? {}
  const first = ordinals?.start ?? 0
  const pods = new Map(cluster.ownedPods.of(set.metadata.uid ?? '').map((pod) => [ordinalOf(pod), pod]))
  const isOrdered = podManagementPolicy !== 'Parallel'
  for (let ordinal = first; ordinal < first + replicas; ordinal += 1) {
    const pod = pods.get(ordinal)
    if (pod === undefined) await create(cluster, set, ordinal, revision)
    else if (!isTerminating(pod) && (pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded')) {
      await remove(cluster, pod)
    } else if (isActive(pod) && isAvailable(pod, minReadySeconds)) continue
    if (isOrdered) return
  }
  const surplus = [...pods]
    .filter(([ordinal]) => ordinal < first || ordinal >= first + replicas)
    .toSorted(([a], [b]) => b - a)
  for (const [, pod] of surplus) {
    if (!isTerminating(pod)) await remove(cluster, pod)
    if (isOrdered) return
  }
  await replaceOutdated(cluster, set, pods, revision)
}

async function replaceOutdated(
  cluster: Cluster,
  set: StatefulSet,
  pods: ReadonlyMap<number, Pod>,
  revision: string,
): Promise<void> {
  const { updateStrategy, minReadySeconds } = set.spec ?? {}
  if (updateStrategy?.type === 'OnDelete') return
  const partition = updateStrategy?.rollingUpdate?.partition ?? 0
  for (const [ordinal, pod] of [...pods].toSorted(([a], [b]) => b - a)) {
    if (ordinal < partition) return
    if (pod.metadata.labels?.[hashLabel] !== revision && !isTerminating(pod)) return void (await remove(cluster, pod))
    if (!isActive(pod) || !isAvailable(pod, minReadySeconds)) return
  }
}

async function create(cluster: Cluster, set: StatefulSet, ordinal: number, revision: string): Promise<void> {
  const name = `${set.metadata.name}-${ordinal}`
  const pod = podOf(set, set.spec?.template ?? {}, {
    name,
    labels: {
      'statefulset.kubernetes.io/pod-name': name,
      'apps.kubernetes.io/pod-index': String(ordinal),
      [hashLabel]: revision,
    },
  })
  const subdomain = set.spec?.serviceName
  const spec = {
    ...pod.spec,
    containers: pod.spec?.containers ?? [],
    hostname: name,
    ...(subdomain === undefined || subdomain === '' ? {} : { subdomain }),
  }
  await createPod(cluster, set, { ...pod, spec }, 'statefulset-controller')
}

async function remove(cluster: Cluster, pod: Pod): Promise<void> {
  await deleteExactly(cluster, resources.pods, pod)
  cluster.ownedPods.deleted(pod)
}

function statusOf(set: StatefulSet, pods: readonly Pod[], revision: string): NonNullable<StatefulSet['status']> {
  const active = pods.filter(isActive)
  const updated = active.filter((pod) => pod.metadata.labels?.[hashLabel] === revision)
  const { replicas = 1, minReadySeconds } = set.spec ?? {}
  const isComplete = updated.length === replicas && active.length === replicas && updated.every((pod) => isReady(pod))
  const currentRevision = isComplete ? revision : (set.status?.currentRevision ?? revision)
  const current = active.filter((pod) => pod.metadata.labels?.[hashLabel] === currentRevision)
  const some = (name: string, count: number): Record<string, number> => (count === 0 ? {} : { [name]: count })
  return {
    replicas: active.length,
    ...some('readyReplicas', active.filter(isReady).length),
    availableReplicas: active.filter((pod) => isAvailable(pod, minReadySeconds)).length,
    ...some('updatedReplicas', updated.length),
    ...some('currentReplicas', current.length),
    currentRevision,
    updateRevision: revision,
    collisionCount: set.status?.collisionCount ?? 0,
    ...(set.metadata.generation === undefined ? {} : { observedGeneration: set.metadata.generation }),
  }
}
