// Job: runs pods until enough of them have succeeded, or too many have failed.
import { resources } from '../../api/index.ts'
import type { Cluster } from './cluster.ts'
import { createPod, deleteExactly, own, ownersOf, startController, writeStatus } from './controller.ts'
import {
  type Condition,
  isActive,
  isReady,
  isTerminating,
  type Job,
  keyOf,
  type Pod,
  podOf,
  timestamp,
  withCondition,
} from './objects.ts'

export function startJobs(cluster: Cluster): AsyncDisposable {
  return startController(cluster, {
    name: 'jobs',
    sources: [own(cluster.jobs), ownersOf(cluster.pods, 'Job')],
    work: (key) => reconcile(cluster, key),
  })
}

type Outcome = { readonly type: 'Complete' | 'Failed'; readonly reason: string; readonly message: string }

const indexAnnotation = 'batch.kubernetes.io/job-completion-index'

async function reconcile(cluster: Cluster, key: string): Promise<number | undefined> {
  const job = cluster.jobs.get(keyOf(key))
  if (job?.metadata.uid === undefined || job.spec === undefined || isTerminating(job)) return undefined
  if (isFinished(job)) return removeWhenExpired(cluster, job)
  const pods = cluster.ownedPods.of(job.metadata.uid)
  const outcome = outcomeOf(job, pods)
  const active = pods.filter(isActive)
  if (outcome !== undefined || job.spec.suspend === true) await removeAll(cluster, active)
  else await runMore(cluster, job, pods)
  const now = cluster.ownedPods.of(job.metadata.uid)
  await writeStatus(cluster, resources.jobs, job, statusOf(job, now, outcome))
  return outcome === undefined ? dueMs(job, pods) : undefined
}

function isFinished(job: Job): boolean {
  return (
    job.status?.conditions?.some(
      ({ type, status }) => (type === 'Complete' || type === 'Failed') && status === 'True',
    ) === true
  )
}

const succeeded = (pods: readonly Pod[]): Pod[] => pods.filter((pod) => pod.status?.phase === 'Succeeded')
const failed = (pods: readonly Pod[]): Pod[] => pods.filter((pod) => pod.status?.phase === 'Failed')

function outcomeOf(job: Job, pods: readonly Pod[]): Outcome | undefined {
  const { completions, backoffLimit = 6, activeDeadlineSeconds } = job.spec ?? {}
  const done = completionsOf(job, pods)
  const failures = failed(pods).length + restartsOf(pods)
  if (failures > backoffLimit) {
    return { type: 'Failed', reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' }
  }
  const startedAt = Date.parse(job.status?.startTime ?? '')
  if (activeDeadlineSeconds !== undefined && startedAt + activeDeadlineSeconds * 1000 <= Date.now()) {
    return { type: 'Failed', reason: 'DeadlineExceeded', message: 'Job was active longer than specified deadline' }
  }
  const isEnough = completions === undefined ? done > 0 && pods.filter(isActive).length === 0 : done >= completions
  return isEnough
    ? { type: 'Complete', reason: 'CompletionsReached', message: 'Reached expected number of succeeded pods' }
    : undefined
}

/** Restarts of containers count as failures when the pod restarts them itself. */
function restartsOf(pods: readonly Pod[]): number {
  return pods
    .filter((pod) => pod.spec?.restartPolicy === 'OnFailure' && isActive(pod))
    .flatMap((pod) => pod.status?.containerStatuses ?? [])
    .reduce((total, { restartCount }) => total + restartCount, 0)
}

function isIndexed(job: Job): boolean {
  return job.spec?.completionMode === 'Indexed'
}

const indexOf = (pod: Pod): number => Number(pod.metadata.annotations?.[indexAnnotation] ?? -1)

function completionsOf(job: Job, pods: readonly Pod[]): number {
  return isIndexed(job) ? new Set(succeeded(pods).map(indexOf)).size : succeeded(pods).length
}

async function runMore(cluster: Cluster, job: Job, pods: readonly Pod[]): Promise<void> {
  const { parallelism = 1, completions } = job.spec ?? {}
  const active = pods.filter(isActive)
  const done = completionsOf(job, pods)
  const wanted =
    completions === undefined ? (done > 0 ? active.length : parallelism) : Math.min(parallelism, completions - done)
  if (active.length > wanted) return removeAll(cluster, active.slice(wanted))
  const ending = pods
    .filter(isTerminating)
    .filter((pod) => pod.status?.phase !== 'Failed' && pod.status?.phase !== 'Succeeded')
  const missing = wanted - active.length - (isIndexed(job) ? 0 : ending.length)
  if (missing <= 0 || backoffMs(pods) > 0) return
  const indexes = isIndexed(job)
    ? freeIndexes(completions ?? 0, pods).slice(0, missing)
    : Array.from({ length: missing }, () => undefined)
  await Promise.all(
    indexes.map(async (index) => {
      await createPod(cluster, job, jobPod(job, index), 'job-controller')
    }),
  )
}

function freeIndexes(completions: number, pods: readonly Pod[]): number[] {
  const taken = new Set(pods.filter((pod) => pod.status?.phase !== 'Failed').map(indexOf))
  return Array.from({ length: completions }, (_, index) => index).filter((index) => !taken.has(index))
}

function jobPod(job: Job, index: number | undefined): Pod {
  const pod = podOf(job, job.spec?.template ?? {})
  if (index === undefined || pod.spec === undefined) return pod
  const text = String(index)
  const withIndex = <T extends { env?: unknown[] }>(container: T): T => ({
    ...container,
    env: [...(container.env ?? []), { name: 'JOB_COMPLETION_INDEX', value: text }],
  })
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      labels: { ...pod.metadata.labels, [indexAnnotation]: text },
      annotations: { ...pod.metadata.annotations, [indexAnnotation]: text },
    },
    spec: { ...pod.spec, containers: pod.spec.containers.map(withIndex) },
  }
}

const firstBackoffMs = 10_000
const longestBackoffMs = 360_000

/** How long to wait after the last failure; it doubles with each. */
function backoffMs(pods: readonly Pod[], now = Date.now()): number {
  const failures = failed(pods)
  if (failures.length === 0) return 0
  const ends = failures.map((pod) => {
    const finished = (pod.status?.containerStatuses ?? []).map(({ state }) =>
      Date.parse(state?.terminated?.finishedAt ?? ''),
    )
    const known = finished.filter((time) => !Number.isNaN(time))
    return known.length > 0 ? Math.max(...known) : Date.parse(pod.metadata.creationTimestamp ?? '')
  })
  const wait = Math.min(firstBackoffMs * 2 ** (failures.length - 1), longestBackoffMs)
  return Math.max(0, Math.max(...ends) + wait - now)
}

function dueMs(job: Job, pods: readonly Pod[]): number | undefined {
  const { activeDeadlineSeconds } = job.spec ?? {}
  const deadline =
    activeDeadlineSeconds === undefined
      ? []
      : [Date.parse(job.status?.startTime ?? timestamp()) + activeDeadlineSeconds * 1000 - Date.now()]
  const backoff = backoffMs(pods)
  const times = [...deadline, ...(backoff > 0 ? [backoff] : [])]
  return times.length > 0 ? Math.max(10, Math.min(...times)) : undefined
}

async function removeAll(cluster: Cluster, pods: readonly Pod[]): Promise<void> {
  for (const pod of pods) {
    await deleteExactly(cluster, resources.pods, pod)
    cluster.ownedPods.deleted(pod)
  }
}

function statusOf(job: Job, pods: readonly Pod[], outcome: Outcome | undefined): NonNullable<Job['status']> {
  const active = pods.filter(isActive)
  const before = (job.status?.conditions ?? []) as Condition[]
  const suspended: Condition[] =
    job.spec?.suspend === true
      ? withCondition(before, { type: 'Suspended', status: 'True', reason: 'JobSuspended', message: 'Job suspended' })
      : before.map((condition) =>
          condition.type === 'Suspended'
            ? { ...condition, status: 'False', reason: 'JobResumed', message: 'Job resumed' }
            : condition,
        )
  const conditions = outcome === undefined ? suspended : withCondition(suspended, { ...outcome, status: 'True' })
  const some = (name: string, count: number): Record<string, number> => (count === 0 ? {} : { [name]: count })
  return {
    ...(job.spec?.suspend === true ? {} : { startTime: job.status?.startTime ?? timestamp() }),
    ...some('active', active.length),
    ready: active.filter(isReady).length,
    ...some('succeeded', completionsOf(job, pods)),
    ...some('failed', failed(pods).length),
    ...(outcome?.type === 'Complete' ? { completionTime: timestamp() } : {}),
    ...(conditions.length > 0
      ? { conditions: conditions as NonNullable<NonNullable<Job['status']>['conditions']> }
      : {}),
  }
}

async function removeWhenExpired(cluster: Cluster, job: Job): Promise<number | undefined> {
  const { ttlSecondsAfterFinished } = job.spec ?? {}
  if (ttlSecondsAfterFinished === undefined) return undefined
  const ends = (job.status?.conditions ?? []).map(({ lastTransitionTime }) => Date.parse(lastTransitionTime ?? ''))
  const left = Math.max(...ends) + ttlSecondsAfterFinished * 1000 - Date.now()
  if (left > 0) return left
  await deleteExactly(cluster, resources.jobs, job)
  return undefined
}
