// PodDisruptionBudget: says how many of its pods may be evicted now.
import { matchesLabelSelector, resources } from '../../api/index.ts'
import type { Cluster } from './cluster.ts'
import { own, type Source, source, startController, writeStatus } from './controller.ts'
import {
  controllerOf,
  type DisruptionBudget,
  isActive,
  isReady,
  keyOf,
  keyText,
  type Pod,
  scaled,
  timestamp,
  withCondition,
} from './objects.ts'

export function startDisruptionBudgets(cluster: Cluster): AsyncDisposable {
  return startController(cluster, {
    name: 'disruption-budgets',
    sources: [own(cluster.disruptionBudgets), budgetsOfPods(cluster)],
    work: (key) => reconcile(cluster, key),
  })
}

function budgetsOfPods(cluster: Cluster): Source {
  return source(cluster.pods, (pod) =>
    cluster.disruptionBudgets
      .list()
      .filter((budget) => selects(budget, pod))
      .map(keyText),
  )
}

function selects({ metadata, spec }: DisruptionBudget, pod: Pod): boolean {
  return (
    metadata.namespace === pod.metadata.namespace &&
    spec?.selector !== undefined &&
    matchesLabelSelector(spec.selector, pod.metadata.labels)
  )
}

async function reconcile(cluster: Cluster, key: string): Promise<undefined> {
  const budget = cluster.disruptionBudgets.get(keyOf(key))
  if (budget === undefined) return
  const pods = cluster.pods.list().filter((pod) => selects(budget, pod) && isActive(pod))
  const numbers = budgetNumbers(budget, pods, wantedPods(cluster, pods))
  await writeStatus(cluster, resources.podDisruptionBudgets, budget, {
    ...budget.status,
    ...numbers,
    observedGeneration: budget.metadata.generation ?? 0,
    conditions: conditionsOf(budget, numbers.disruptionsAllowed > 0),
  })
}

/** How many pods there should be: what their controllers want, and each pod without one that can be scaled. */
function wantedPods(cluster: Cluster, pods: readonly Pod[]): number {
  const scales = new Map<string, number>()
  for (const pod of pods) {
    const owner = controllerOf(pod)
    const key = { namespace: pod.metadata.namespace ?? '', name: owner?.name ?? '' }
    const set =
      owner?.kind === 'ReplicaSet'
        ? cluster.replicaSets.get(key)
        : owner?.kind === 'StatefulSet'
          ? cluster.statefulSets.get(key)
          : undefined
    if (set?.metadata.uid === owner?.uid && set !== undefined) scales.set(owner?.uid ?? '', set.spec?.replicas ?? 1)
    else scales.set(pod.metadata.uid ?? '', 1)
  }
  return [...scales.values()].reduce((sum, scale) => sum + scale, 0)
}

/** The numbers of a budget's status. Percentages are of the wanted pods and rounded up. */
export function budgetNumbers(budget: DisruptionBudget, pods: readonly Pod[], wanted: number) {
  const { minAvailable, maxUnavailable } = budget.spec ?? {}
  const expectedPods = typeof minAvailable === 'number' ? pods.length : wanted
  const desiredHealthy =
    maxUnavailable !== undefined
      ? Math.max(0, expectedPods - scaled(maxUnavailable, expectedPods, true))
      : scaled(minAvailable ?? 1, expectedPods, true)
  const currentHealthy = pods.filter(isReady).length
  const disruptionsAllowed = expectedPods === 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy)
  return { expectedPods, desiredHealthy, currentHealthy, disruptionsAllowed }
}

function conditionsOf({ status }: DisruptionBudget, isAllowed: boolean) {
  const conditions = withCondition(status?.conditions, {
    type: 'DisruptionAllowed',
    status: isAllowed ? 'True' : 'False',
    reason: isAllowed ? 'SufficientPods' : 'InsufficientPods',
    message: '',
  })
  return conditions.map((condition) => ({
    ...condition,
    reason: condition.reason ?? '',
    message: condition.message ?? '',
    lastTransitionTime: condition.lastTransitionTime ?? timestamp(),
  }))
}
