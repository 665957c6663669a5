// The status of a Deployment: counts of its ReplicaSets, and how far its rollout is.
import { type Condition, type Deployment, type ReplicaSet, scaled, timestamp, withCondition } from './objects.ts'

type Status = NonNullable<Deployment['status']>

export function deploymentStatus(
  deployment: Deployment,
  current: ReplicaSet | undefined,
  old: readonly ReplicaSet[],
): Status {
  const all = current === undefined ? old : [current, ...old]
  const count = (field: 'replicas' | 'readyReplicas' | 'availableReplicas'): number =>
    all.reduce((total, set) => total + (set.status?.[field] ?? 0), 0)
  const counts = {
    replicas: count('replicas'),
    updatedReplicas: current?.status?.replicas ?? 0,
    readyReplicas: count('readyReplicas'),
    availableReplicas: count('availableReplicas'),
    unavailableReplicas: Math.max(
      0,
      Math.max(deployment.spec?.replicas ?? 1, count('replicas')) - count('availableReplicas'),
    ),
  }
  const before = (deployment.status?.conditions ?? []) as Condition[]
  const available = withCondition(before, stamped(before, availability(deployment, counts.availableReplicas)))
  const failure = current?.status?.conditions?.find(({ type }) => type === 'ReplicaFailure')
  const failed =
    failure === undefined
      ? available.filter(({ type }) => type !== 'ReplicaFailure')
      : withCondition(available, failure as Condition)
  const progress = progressOf(deployment, current, counts)
  const conditions = progress === undefined ? failed : withCondition(failed, stamped(before, progress))
  return {
    ...Object.fromEntries(Object.entries(counts).filter(([, value]) => value !== 0)),
    ...(deployment.metadata.generation === undefined ? {} : { observedGeneration: deployment.metadata.generation }),
    ...(deployment.status?.collisionCount === undefined ? {} : { collisionCount: deployment.status.collisionCount }),
    conditions: conditions as NonNullable<Status['conditions']>,
  }
}

/** The condition with the time of its last change in any part. */
function stamped(before: readonly Condition[], wanted: Condition): Condition {
  const existing = before.find(({ type }) => type === wanted.type)
  const isUnchanged =
    existing?.status === wanted.status && existing.reason === wanted.reason && existing.message === wanted.message
  const lastUpdateTime = isUnchanged ? existing.lastUpdateTime : timestamp()
  return { ...wanted, ...(lastUpdateTime === undefined ? {} : { lastUpdateTime }) }
}

function availability(deployment: Deployment, available: number): Condition {
  const { replicas = 1, strategy } = deployment.spec ?? {}
  const unavailable =
    strategy?.type === 'Recreate' ? replicas : scaled(strategy?.rollingUpdate?.maxUnavailable ?? '25%', replicas, false)
  return available >= replicas - unavailable
    ? {
        type: 'Available',
        status: 'True',
        reason: 'MinimumReplicasAvailable',
        message: 'Deployment has minimum availability.',
      }
    : {
        type: 'Available',
        status: 'False',
        reason: 'MinimumReplicasUnavailable',
        message: 'Deployment does not have minimum availability.',
      }
}

type Counts = Record<'replicas' | 'updatedReplicas' | 'availableReplicas' | 'readyReplicas', number>

function progressOf(deployment: Deployment, current: ReplicaSet | undefined, counts: Counts): Condition | undefined {
  const { replicas = 1, paused } = deployment.spec ?? {}
  const existing = deployment.status?.conditions?.find(({ type }) => type === 'Progressing') as Condition | undefined
  if (paused === true) {
    return { type: 'Progressing', status: 'Unknown', reason: 'DeploymentPaused', message: 'Deployment is paused' }
  }
  if (current === undefined) return existing
  const name = `ReplicaSet "${current.metadata.name}"`
  const isComplete =
    counts.updatedReplicas === replicas && counts.replicas === replicas && counts.availableReplicas === replicas
  if (isComplete) {
    return {
      type: 'Progressing',
      status: 'True',
      reason: 'NewReplicaSetAvailable',
      message: `${name} has successfully progressed.`,
    }
  }
  const isMoving = madeProgress(deployment, counts)
  const isSameRollout = existing?.message?.includes(name) === true
  if (isSameRollout && existing.reason !== 'NewReplicaSetAvailable' && !isMoving) {
    return isOverdue(deployment, existing)
      ? {
          type: 'Progressing',
          status: 'False',
          reason: 'ProgressDeadlineExceeded',
          message: `${name} has timed out progressing.`,
        }
      : existing
  }
  // Pods of a finished rollout that fail later are not a new rollout.
  if (isSameRollout && existing.reason === 'NewReplicaSetAvailable' && counts.updatedReplicas === replicas)
    return existing
  return {
    type: 'Progressing',
    status: 'True',
    reason: 'ReplicaSetUpdated',
    message: `${name} is progressing.`,
    lastUpdateTime: timestamp(),
  }
}

function madeProgress({ status }: Deployment, counts: Counts): boolean {
  return (
    counts.updatedReplicas > (status?.updatedReplicas ?? 0) ||
    counts.readyReplicas > (status?.readyReplicas ?? 0) ||
    counts.availableReplicas > (status?.availableReplicas ?? 0) ||
    counts.replicas - counts.updatedReplicas < (status?.replicas ?? 0) - (status?.updatedReplicas ?? 0)
  )
}

function isOverdue(deployment: Deployment, progressing: Condition): boolean {
  const { progressDeadlineSeconds = 600 } = deployment.spec ?? {}
  const since = Date.parse(progressing.lastUpdateTime ?? progressing.lastTransitionTime ?? '')
  return progressing.reason === 'ProgressDeadlineExceeded' || since + progressDeadlineSeconds * 1000 < Date.now()
}

/** When to look again at a rollout that may stand still; undefined when it is complete or has failed. */
export function progressDueMs(deployment: Deployment, status: Status): number | undefined {
  const progressing = status.conditions?.find(({ type }) => type === 'Progressing')
  if (progressing?.reason !== 'ReplicaSetUpdated') return undefined
  return (deployment.spec?.progressDeadlineSeconds ?? 600) * 1000 + 1000
}
