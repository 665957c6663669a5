// Node lifecycle: a node whose heartbeat has stopped is not ready, and neither are its pods.
import { resources } from '../../api/index.ts'
import type { Cluster } from './cluster.ts'
import { own, source, startController } from './controller.ts'
import { type Condition, isReady, isTerminating, type Node, type Pod, withCondition } from './objects.ts'

/** A node is given this long after its last heartbeat. */
const graceMs = 40_000
/** A pod that was deleted on a node that is gone does not wait for the node's word. */
const podGraceMs = 60_000

/** A node that is gone may register again within this time: its pods wait for it. */
const missingNodeGraceMs = 60_000

export function startNodeLifecycle(cluster: Cluster): AsyncDisposable {
  const missingSince = new Map<string, number>()
  return startController(cluster, {
    name: 'node-lifecycle',
    sources: [
      own(cluster.nodes),
      source(cluster.nodeLeases, ({ metadata }) => [metadata.name]),
      source(cluster.pods, ({ spec: { nodeName = '' } = { containers: [] } }) =>
        nodeName === '' || cluster.nodes.get({ name: nodeName }) !== undefined ? [] : [nodeName],
      ),
    ],
    async work(name) {
      const node = cluster.nodes.get({ name })
      if (node === undefined) return watchMissing(cluster, missingSince, name)
      missingSince.delete(name)
      const lease = cluster.nodeLeases.get({ namespace: 'kube-node-lease', name })
      const renewed = Date.parse(lease?.spec?.renewTime ?? node.metadata.creationTimestamp ?? '')
      const left = renewed + graceMs - Date.now()
      if (left > 0) return left + 100
      await markUnknown(cluster, node)
      await markPodsNotReady(cluster, name)
      return graceMs
    },
  })
}

async function markUnknown(cluster: Cluster, node: Node): Promise<void> {
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')
  if (ready?.status === 'Unknown') return
  const wanted: Condition = {
    type: 'Ready',
    status: 'Unknown',
    reason: 'NodeStatusUnknown',
    message: 'Kubelet stopped posting node status.',
  }
  const conditions = withCondition(node.status?.conditions, wanted) as NonNullable<
    NonNullable<Node['status']>['conditions']
  >
  cluster.log.warn('node does not report', { node: node.metadata.name })
  await cluster.client.replace(
    resources.nodes,
    { ...node, status: { ...node.status, conditions } },
    { subresource: 'status' },
  )
}

async function markPodsNotReady(cluster: Cluster, node: string): Promise<void> {
  for (const pod of cluster.pods.list()) {
    if (pod.spec?.nodeName !== node) continue
    if (isReady(pod)) await markNotReady(cluster, pod)
    if (isTerminating(pod)) await removeOverdue(cluster, pod)
  }
}

async function markNotReady(cluster: Cluster, pod: Pod): Promise<void> {
  const wanted: Condition = { type: 'Ready', status: 'False', reason: 'NodeNotReady', message: 'Node is not ready' }
  const conditions = withCondition(pod.status?.conditions, wanted) as NonNullable<
    NonNullable<Pod['status']>['conditions']
  >
  await cluster.client.replace(
    resources.pods,
    { ...pod, status: { ...pod.status, conditions } },
    { subresource: 'status' },
  )
}

async function removeOverdue(cluster: Cluster, pod: Pod): Promise<void> {
  const due = Date.parse(pod.metadata.deletionTimestamp ?? '') + podGraceMs
  if (due > Date.now()) return
  await forceDelete(cluster, pod)
}

async function watchMissing(
  cluster: Cluster,
  missingSince: Map<string, number>,
  name: string,
): Promise<number | undefined> {
  const pods = cluster.pods.list().filter((pod) => pod.spec?.nodeName === name)
  const since = missingSince.get(name) ?? Date.now()
  missingSince.set(name, since)
  const left = since + missingNodeGraceMs - Date.now()
  if (left > 0) return left + 100
  missingSince.delete(name)
  for (const pod of pods) await forceDelete(cluster, pod)
  return undefined
}

async function forceDelete(cluster: Cluster, { metadata }: Pod): Promise<void> {
  const { namespace = '', name, uid } = metadata
  await cluster.client.delete(
    resources.pods,
    { namespace, name },
    { gracePeriodSeconds: 0, ...(uid === undefined ? {} : { preconditions: { uid } }) },
  )
}
