// Scheduler: gives each pod a node that is ready, that the pod selects and tolerates, and that has the fewest pods of its kind.
import { type KubeObject, resources } from '../../api/index.ts'
import type { Cluster } from './cluster.ts'
import { own, type Source, source, startController } from './controller.ts'
import { recordEvent } from './events.ts'
import { nodeFits, refusalsText } from './node-fit.ts'
import { controllerOf, isActive, isTerminating, keyOf, keyText, type Node, type Pod, withCondition } from './objects.ts'

export function startScheduler(cluster: Cluster): AsyncDisposable {
  const waiting = new Set<string>()
  // Decisions are made one after the other; those that the informer has not seen yet count too.
  const decided = new Map<string, string>()
  const nodesChanged: Source = source(cluster.nodes, () => [...waiting])
  return startController(cluster, {
    name: 'scheduler',
    concurrency: 1,
    sources: [own(cluster.pods), nodesChanged],
    async work(key) {
      const pod = cluster.pods.get(keyOf(key))
      const isOurs = pod !== undefined && isUnassigned(pod) && isActive(pod)
      if (!isOurs || decided.has(pod.metadata.uid ?? '')) {
        waiting.delete(key)
        if (pod === undefined || !isUnassigned(pod)) decided.delete(pod?.metadata.uid ?? '')
        return undefined
      }
      for (const uid of decided.keys()) {
        const seen = cluster.pods.list().find(({ metadata }) => metadata.uid === uid)
        if (seen === undefined || !isUnassigned(seen)) decided.delete(uid)
      }
      const node = chooseNode(cluster, pod, decided)
      if (typeof node !== 'string') {
        waiting.delete(key)
        decided.set(pod.metadata.uid ?? '', node.metadata.name)
        try {
          await bind(cluster, pod, node)
        } catch (error) {
          decided.delete(pod.metadata.uid ?? '')
          throw error
        }
        return undefined
      }
      waiting.add(key)
      await reportUnschedulable(cluster, pod, node)
      return undefined
    },
  })
}

function isUnassigned(pod: Pod): boolean {
  const gates = pod.spec?.schedulingGates?.length ?? 0
  const scheduler = pod.spec?.schedulerName ?? 'default-scheduler'
  return (pod.spec?.nodeName ?? '') === '' && gates === 0 && scheduler === 'default-scheduler'
}

/** The node, or why there is none. */
function chooseNode(cluster: Cluster, pod: Pod, decided: ReadonlyMap<string, string>): Node | string {
  const nodes = cluster.nodes.list().filter((node) => !isTerminating(node))
  const refusals = new Map<string, number>()
  const fitting = nodes.filter((node) => {
    const why = nodeFits(node, pod, podsOn(cluster, node.metadata.name))
    if (why !== undefined) refusals.set(why, (refusals.get(why) ?? 0) + 1)
    return why === undefined
  })
  if (fitting.length === 0) return refusalsText(nodes.length, refusals)
  const owner = controllerOf(pod)?.uid
  const load = (node: Node): readonly [number, number] => {
    const there = cluster.pods.list().filter((other) => {
      const place = other.spec?.nodeName || decided.get(other.metadata.uid ?? '')
      return place === node.metadata.name && isActive(other)
    })
    const alike = there.filter((other) => owner !== undefined && controllerOf(other)?.uid === owner)
    return [alike.length, there.length]
  }
  const ranked = fitting
    .map((node) => ({ node, load: load(node) }))
    .toSorted(
      (a, b) =>
        a.load[0] - b.load[0] || a.load[1] - b.load[1] || (a.node.metadata.name < b.node.metadata.name ? -1 : 1),
    )
  return ranked[0]?.node ?? refusalsText(nodes.length, refusals)
}

function podsOn(cluster: Cluster, node: string): readonly Pod[] {
  return cluster.pods.list().filter((pod) => pod.spec?.nodeName === node && isActive(pod))
}

async function bind(cluster: Cluster, pod: Pod, node: Node): Promise<void> {
  const { namespace = '', name, uid } = pod.metadata
  const binding: KubeObject & { target: unknown } = {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name, namespace, ...(uid === undefined ? {} : { uid }) },
    target: { apiVersion: 'v1', kind: 'Node', name: node.metadata.name },
  }
  await cluster.client.createSubresource(resources.pods, { namespace, name }, 'binding', binding)
  cluster.log.debug('pod scheduled', { pod: keyText(pod), node: node.metadata.name })
  const message = `Successfully assigned ${keyText(pod)} to ${node.metadata.name}`
  await recordEvent(cluster, pod, { type: 'Normal', reason: 'Scheduled', message, component: 'default-scheduler' })
}

async function reportUnschedulable(cluster: Cluster, pod: Pod, message: string): Promise<void> {
  const existing = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (existing?.status === 'False' && existing.message === message) return
  const wanted = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }
  const conditions = withCondition(pod.status?.conditions, wanted) as NonNullable<
    NonNullable<Pod['status']>['conditions']
  >
  await cluster.client.replace(
    resources.pods,
    { ...pod, status: { ...pod.status, phase: pod.status?.phase ?? 'Pending', conditions } },
    { subresource: 'status' },
  )
  await recordEvent(cluster, pod, {
    type: 'Warning',
    reason: 'FailedScheduling',
    message,
    component: 'default-scheduler',
  })
}
