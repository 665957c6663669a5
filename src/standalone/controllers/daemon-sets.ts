// DaemonSet: one pod on each node that fits; replaces pods of older templates a few at a time.
import { createHash } from 'node:crypto'
import { resources } from '../../api/index.ts'
import type { Cluster } from './cluster.ts'
import { createPod, deleteExactly, own, ownersOf, source, startController, writeStatus } from './controller.ts'
import { daemonFits, daemonTolerations } from './node-fit.ts'
import {
  type DaemonSet,
  isActive,
  isAvailable,
  isReady,
  isTerminating,
  keyOf,
  keyText,
  type Node,
  type Pod,
  podOf,
  scaled,
} from './objects.ts'

const hashLabel = 'controller-revision-hash'

export function startDaemonSets(cluster: Cluster): AsyncDisposable {
  return startController(cluster, {
    name: 'daemon-sets',
    sources: [
      own(cluster.daemonSets),
      ownersOf(cluster.pods, 'DaemonSet'),
      source(
        cluster.nodes,
        () => cluster.daemonSets.list().map(keyText),
        (change) => change.kind !== 'updated' || placementOf(change.object) !== placementOf(change.old),
      ),
    ],
    work: (key) => reconcile(cluster, key),
  })
}

/** The parts of a node that decide what runs there; heartbeats are none of them. */
function placementOf({ metadata, spec }: Node): string {
  return JSON.stringify([metadata.labels, metadata.deletionTimestamp, spec?.taints])
}

interface Plan {
  readonly hash: string
  readonly nodes: readonly Node[]
  readonly byNode: ReadonlyMap<string, readonly Pod[]>
}

async function reconcile(cluster: Cluster, key: string): Promise<number | undefined> {
  const set = cluster.daemonSets.get(keyOf(key))
  if (set?.metadata.uid === undefined || set.spec === undefined || isTerminating(set)) return undefined
  const pods = cluster.ownedPods.of(set.metadata.uid)
  const plan: Plan = {
    hash: templateHash(set),
    nodes: cluster.nodes.list().filter((node) => !isTerminating(node) && daemonFits(node, set.spec?.template.spec)),
    byNode: Map.groupBy(pods, placeOf),
  }
  await removeUnwanted(cluster, plan, pods)
  await addMissing(cluster, set, plan)
  await replaceOutdated(cluster, set, plan)
  const current = cluster.ownedPods.of(set.metadata.uid)
  await writeStatus(
    cluster,
    resources.daemonSets,
    set,
    statusOf(set, { ...plan, byNode: Map.groupBy(current, placeOf) }),
  )
  const { minReadySeconds = 0 } = set.spec
  const isWaiting = minReadySeconds > 0 && current.some((pod) => isReady(pod) && !isAvailable(pod, minReadySeconds))
  return isWaiting ? 1000 : undefined
}

function templateHash(set: DaemonSet): string {
  return createHash('sha256').update(JSON.stringify(set.spec?.template)).digest('hex').slice(0, 10)
}

/** The node that a pod runs on or is meant for. */
function placeOf(pod: Pod): string {
  if ((pod.spec?.nodeName ?? '') !== '') return pod.spec?.nodeName ?? ''
  const terms = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  return terms?.[0]?.matchFields?.[0]?.values?.[0] ?? ''
}

/** Pods on nodes that do not fit, second pods of a node, and pods that have ended. */
async function removeUnwanted(cluster: Cluster, { nodes, byNode }: Plan, pods: readonly Pod[]): Promise<void> {
  const wanted = new Set(nodes.map(({ metadata }) => metadata.name))
  const kept = new Set(
    [...byNode].flatMap(([node, there]) => {
      const [first] = there
        .filter(isActive)
        .toSorted((a, b) => ((a.metadata.creationTimestamp ?? '') < (b.metadata.creationTimestamp ?? '') ? -1 : 1))
      return wanted.has(node) && first !== undefined ? [first] : []
    }),
  )
  for (const pod of pods) {
    if (isTerminating(pod) || kept.has(pod)) continue
    await deleteExactly(cluster, resources.pods, pod)
    cluster.ownedPods.deleted(pod)
  }
}

/** A pod that is still ending holds its node: ports and names of the old one are in use. */
async function addMissing(cluster: Cluster, set: DaemonSet, { nodes, byNode, hash }: Plan): Promise<void> {
  const missing = nodes.filter((node) => (byNode.get(node.metadata.name) ?? []).length === 0)
  await Promise.all(
    missing.map(async (node) => {
      const pod = podOf(set, set.spec?.template ?? {}, { labels: { [hashLabel]: hash } })
      const placed = { ...pod, spec: { ...pod.spec, containers: pod.spec?.containers ?? [], ...placement(pod, node) } }
      await createPod(cluster, set, placed, 'daemonset-controller')
    }),
  )
}

function placement(pod: Pod, node: Node): Partial<NonNullable<Pod['spec']>> {
  return {
    tolerations: [...(pod.spec?.tolerations ?? []), ...daemonTolerations],
    nodeName: node.metadata.name,
  }
}

async function replaceOutdated(cluster: Cluster, set: DaemonSet, { nodes, byNode, hash }: Plan): Promise<void> {
  const { updateStrategy, minReadySeconds } = set.spec ?? {}
  if (updateStrategy?.type === 'OnDelete') return
  const limit = Math.max(1, scaled(updateStrategy?.rollingUpdate?.maxUnavailable ?? 1, nodes.length, true))
  const active = nodes.flatMap((node) => (byNode.get(node.metadata.name) ?? []).filter(isActive).slice(0, 1))
  const isOutdated = (pod: Pod): boolean => pod.metadata.labels?.[hashLabel] !== hash
  let unavailable = nodes.length - active.filter((pod) => isAvailable(pod, minReadySeconds)).length
  const outdated = active.filter(isOutdated)
  // Those that serve nobody cost nothing.
  for (const pod of outdated.toSorted((a, b) => Number(isAvailable(a)) - Number(isAvailable(b)))) {
    const serves = isAvailable(pod, minReadySeconds)
    if (serves && unavailable >= limit) return
    await deleteExactly(cluster, resources.pods, pod)
    cluster.ownedPods.deleted(pod)
    if (serves) unavailable += 1
  }
}

function statusOf(set: DaemonSet, { nodes, byNode, hash }: Plan): NonNullable<DaemonSet['status']> {
  const wanted = new Set(nodes.map(({ metadata }) => metadata.name))
  const active = nodes.flatMap((node) => (byNode.get(node.metadata.name) ?? []).filter(isActive).slice(0, 1))
  const misplaced = [...byNode].filter(([node, pods]) => !wanted.has(node) && pods.some(isActive)).length
  const available = active.filter((pod) => isAvailable(pod, set.spec?.minReadySeconds)).length
  const updated = active.filter((pod) => pod.metadata.labels?.[hashLabel] === hash).length
  const unavailable = nodes.length - available
  return {
    currentNumberScheduled: active.length,
    desiredNumberScheduled: nodes.length,
    numberMisscheduled: misplaced,
    numberReady: active.filter(isReady).length,
    ...(available > 0 ? { numberAvailable: available } : {}),
    ...(unavailable > 0 ? { numberUnavailable: unavailable } : {}),
    ...(updated > 0 ? { updatedNumberScheduled: updated } : {}),
    ...(set.metadata.generation === undefined ? {} : { observedGeneration: set.metadata.generation }),
  }
}
